#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kelvin {

// What the tool is for.
constexpr auto kToolSummary =
    "see and control how softmax temperature shapes the rank of a network";

// Groups of flags in the help.  Flags of the group "" are not shown.
constexpr auto kOwnFlags = "Flags";
constexpr auto kCommonFlags = "Flags of every verb";
constexpr auto kJobs = "Jobs";

// The jobs of a command that people may name, those of no group left out.
std::vector<const CLI::App*> jobs_of(const CLI::App& command);

// Its arguments, in their order.
std::vector<const CLI::Option*> positionals_of(const CLI::App& command);

// "kelvin measure INPUT [key=value...] [flags]"
std::string usage_of(const CLI::App& command);

// What the help says of a flag or an argument.
std::string description_of(const CLI::Option& option);

// Names with what they mean: "-T, --temperature X".
using HelpEntries = std::vector<std::pair<std::string, std::string>>;

struct HelpSection {
  std::string title;  // "Jobs", "Arguments", a group of flags
  HelpEntries entries;
};

// All that the help shows, the flags of every verb last.
std::vector<HelpSection> help_sections(const CLI::App& command);

// What --help prints, in lines of at most `width` columns: of the job that was named, if one was.
std::string help_text(const CLI::App& command, size_t width);

// "  NAME  TEXT" for each, texts one below the other and wrapped.
std::string glossary_text(const HelpEntries& entries, size_t width);

}  // namespace kelvin
