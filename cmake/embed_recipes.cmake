# cmake -DRECIPES_DIR=... -DOUTPUT=... -P embed_recipes.cmake
# Writes a source file that holds every recipe as a raw string.
file(GLOB recipes ${RECIPES_DIR}/*.toml)
set(entries "")
foreach(recipe ${recipes})
  get_filename_component(name ${recipe} NAME_WE)
  file(READ ${recipe} text)
  string(APPEND entries "    {\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
set(source "#include \"kelvin/runs/builtin_recipes.h\"

namespace kelvin {

const std::map<std::string, std::string>& builtin_recipes() {
  static const std::map<std::string, std::string> recipes = {
${entries}  };
  return recipes;
}

}  // namespace kelvin
")
file(WRITE ${OUTPUT} "${source}")
