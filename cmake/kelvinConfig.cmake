include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
find_dependency(Torch)
include(${CMAKE_CURRENT_LIST_DIR}/kelvin_targets.cmake)
