#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kelvin {

// Groups of flags in the help.  Flags of the group "" are not shown.
constexpr auto kOwnFlags = "Flags";
constexpr auto kCommonFlags = "Flags of every verb";

// The jobs of a command that people may name, those of no group left out.
std::vector<const CLI::App*> jobs_of(const CLI::App& command);

// What --help prints, in lines of at most `width` columns: of the job that was named, if one was.
std::string help_text(const CLI::App& command, size_t width);

// "  NAME  TEXT" for each, texts one below the other and wrapped.
std::string glossary_text(const std::vector<std::pair<std::string, std::string>>& entries,
                          size_t width);

}  // namespace kelvin
