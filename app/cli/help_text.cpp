#include "app/cli/help_text.h"

#include <algorithm>

#include "app/cli/value_type.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/text_table.h"

namespace kelvin {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kGap = 2;
constexpr size_t kLongName = 24;  // of longer ones the text begins on the next line

// "INPUT", "key=value"
std::string positional_name(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type == kSettingType ? type : option.get_name(/*positional=*/true);
}

// "kelvin data fetch"
std::string full_name(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

// "-T, --temperature X"
std::string flag_name(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  auto text = join(names, ", ");
  const auto type = value_type(option).shown;
  return type.empty() ? text : text + " " + type;
}

HelpEntries entries_of_group(const CLI::App& command, const std::string& group) {
  HelpEntries entries;
  for (const auto* option : command.get_options()) {
    if (option->get_positional() || option->get_group() != group) continue;
    entries.emplace_back(flag_name(*option), description_of(*option));
  }
  return entries;
}

HelpEntries entries_of_positionals(const CLI::App& command) {
  HelpEntries entries;
  for (const auto* option : positionals_of(command)) {
    const auto name = positional_name(*option);
    const auto type = value_type(*option).shown;
    const bool says_more = !type.empty() && type != name;
    entries.emplace_back(says_more ? name + " (" + type + ")" : name, description_of(*option));
  }
  return entries;
}

}  // namespace

std::vector<const CLI::App*> jobs_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* job) { return !job->get_group().empty(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string usage_of(const CLI::App& command) {
  auto usage = full_name(command);
  if (!jobs_of(command).empty()) usage += " JOB";
  for (const auto* option : positionals_of(command)) {
    const auto name = positional_name(*option) + (takes_several(*option) ? "..." : "");
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return usage + " [flags]";
}

std::string description_of(const CLI::Option& option) {
  const auto preset = option.get_default_str();
  return option.get_description() + (preset.empty() ? "" : " (default: " + preset + ")");
}

std::vector<HelpSection> help_sections(const CLI::App& command) {
  std::vector<HelpSection> sections;
  const auto add = [&](const std::string& title, HelpEntries entries) {
    if (!entries.empty()) sections.push_back({title, std::move(entries)});
  };
  HelpEntries jobs;
  for (const auto* job : jobs_of(command))
    jobs.emplace_back(job->get_name(), job->get_description());
  add(kJobs, std::move(jobs));
  add("Arguments", entries_of_positionals(command));
  for (const auto& group : command.get_groups()) {
    if (!group.empty() && group != kCommonFlags) add(group, entries_of_group(command, group));
  }
  add(kCommonFlags, entries_of_group(command, kCommonFlags));
  return sections;
}

std::string glossary_text(const HelpEntries& entries, size_t width) {
  size_t longest = 0;
  for (const auto& [name, text] : entries) {
    const auto length = shown_width(name);
    if (length <= kLongName) longest = std::max(longest, length);
  }
  const size_t start = kIndent + longest + kGap;
  std::string lines;
  for (const auto& [name, text] : entries) {
    std::string line = std::string(kIndent, ' ') + name;
    if (shown_width(name) > longest) {
      lines += line + "\n";
      line.clear();
    }
    for (const auto& part : wrapped_lines(text, width - std::min(width - 1, start))) {
      line += std::string(start - std::min(start, shown_width(line)), ' ') + part;
      line.erase(line.find_last_not_of(' ') + 1);
      lines += line + "\n";
      line.clear();
    }
  }
  return lines;
}

std::string help_text(const CLI::App& command, size_t width) {
  const auto chosen = command.get_subcommands();
  if (!chosen.empty()) return help_text(*chosen.front(), width);
  auto text = join(wrapped_lines("Usage: " + usage_of(command), width), "\n") + "\n\n" +
              join(wrapped_lines(command.get_description(), width), "\n") + "\n";
  for (const auto& section : help_sections(command)) {
    text += "\n" + section.title + ":\n" + glossary_text(section.entries, width);
  }
  return text;
}

}  // namespace kelvin
