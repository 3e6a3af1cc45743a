#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kelvin {

// Of settings, which stand between arguments.
inline constexpr auto kSettingType = "key=value";

enum class Paths { none, folders, files };  // files: folders, too, on the way to them

// What the value of a flag or of an argument may be.  CLI11 keeps it as the name of the type:
// "DIR", or, where the values can be listed, "FORMAT of text|md", "NAME of <models>" for what
// `kelvin list models` prints, "A,B of all|<detectors>" for several with commas between.
struct ValueType {
  std::string shown;                 // in the help: "DIR", "FORMAT", "A,B"
  std::vector<std::string> choices;  // "text", "md", "<models>"
  bool is_list = false;              // several, with commas between
  Paths paths = Paths::none;
};

ValueType value_type(const CLI::Option& option);

// "models" of the choice "<models>"; empty if it is a value itself.
std::string listed_kind(const std::string& choice);

// Whether the option stands for any number of words.
bool takes_several(const CLI::Option& option);

}  // namespace kelvin
