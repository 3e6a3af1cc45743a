# cmake -DCLASSES_DIR=... -DOUTPUT=... -P embed_class_names.cmake
# Writes a source file that holds every list of class names as a raw string.
file(GLOB lists ${CLASSES_DIR}/*.txt)
set(entries "")
foreach(list ${lists})
  get_filename_component(name ${list} NAME_WE)
  file(READ ${list} text)
  string(APPEND entries "    {\"${name}\", R\"names(${text})names\"},\n")
endforeach()
set(source "#include \"kelvin/sources/class_names.h\"

namespace kelvin {

const std::map<std::string, std::string>& class_lists() {
  static const std::map<std::string, std::string> lists = {
${entries}  };
  return lists;
}

}  // namespace kelvin
")
file(WRITE ${OUTPUT} "${source}")
