#include "app/cli/setting_words.h"

#include <algorithm>

#include "app/cli/value_type.h"

namespace kelvin {

bool is_setting(std::string_view word) {
  const auto key = word.substr(0, word.find('='));
  return key.size() < word.size() && !key.empty() && key.front() != '.' &&
         std::all_of(key.begin(), key.end(), [](char letter) {
           const bool is_small = letter >= 'a' && letter <= 'z';
           const bool is_digit = letter >= '0' && letter <= '9';
           return is_small || is_digit || letter == '_' || letter == '.';
         });
}

void declare_settings(CLI::App& command, std::vector<std::string>& settings,
                      const std::string& help) {
  command.add_option("SETTING", settings, help)->type_name(kSettingType);
}

CLI::Option* declare_input(CLI::App& command, const std::string& name, std::string& input,
                           const std::string& help) {
  command.validate_positionals();  // a word that is not for one argument is offered to the next
  return command.add_option(name, input, help)->type_name("")->check([](const std::string& word) {
    return std::string(is_setting(word) ? "is a setting" : "");
  });
}

}  // namespace kelvin
