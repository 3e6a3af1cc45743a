#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// Whether a word of the command line is a setting, such as train.lr=0.3.  Paths that look like one
// must be written with a slash: ./lr=0.3
bool is_setting(std::string_view word);

// Settings as words.  They may stand anywhere: none of them is taken for an input.
void declare_settings(CLI::App& command, std::vector<std::string>& settings,
                      const std::string& help);

// An argument, such as a run or the name of a model, beside settings.
CLI::Option* declare_input(CLI::App& command, const std::string& name, std::string& input,
                           const std::string& help);

}  // namespace kelvin
