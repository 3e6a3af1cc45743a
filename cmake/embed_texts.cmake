# cmake -DFILES=FOLDER/*.EXTENSION -DHEADER=... -DFUNCTION=... -DOUTPUT=... -P embed_texts.cmake
# Writes a source file in which FUNCTION, declared in HEADER, returns the text of each file by its name.
file(GLOB files ${FILES})
set(entries "")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"text(${text})text\"},\n")
endforeach()
set(source "#include \"${HEADER}\"

namespace kelvin {

const std::map<std::string, std::string>& ${FUNCTION}() {
  static const std::map<std::string, std::string> texts = {
${entries}  };
  return texts;
}

}  // namespace kelvin
")
file(WRITE ${OUTPUT} "${source}")
