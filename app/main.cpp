#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/common_flags.h"
#include "app/cli/help_text.h"
#include "app/cli/human_text.h"
#include "app/cli/setting_words.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "app/cli/version.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

std::string overview() {
  std::vector<std::pair<std::string, std::string>> summaries;
  for (const auto& [name, verb] : verbs().entries()) summaries.emplace_back(name, verb.summary);
  const auto width = stdout_columns();
  return "kelvin: " + std::string(kToolSummary) +
         ".\n\n"
         "Usage: kelvin VERB [flags]    (kelvin VERB --help explains each)\n\nVerbs:\n" +
         glossary_text(summaries, width) +
         "\nFlags:\n  -h, --help\n  --version\n\nStart with: kelvin demo\n";
}

// The flag that `word` was probably meant to be; empty if none is near.
std::string nearest_flag(const CLI::App& command, const std::string& word) {
  std::vector<std::string> flags;
  for (const auto* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // not of this verb
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return nearest_name(word.substr(0, word.find('=')), flags);
}

// A word where the name of a job is expected.
void reject_unknown_job(const CLI::App& command, const std::string& word) {
  std::vector<std::string> jobs;
  for (const auto* job : jobs_of(command)) jobs.push_back(job->get_name());
  const auto guess = nearest_name(word, jobs);
  check(jobs.empty(), "no job '", word, "'",
        guess.empty() ? "." : "; did you mean '" + guess + "'?", " There are: ", join(jobs, ", "));
}

void reject_leftovers(const CLI::App& command) {
  const auto chosen = command.get_subcommands();
  for (const auto* job : chosen) reject_leftovers(*job);
  auto leftovers = command.remaining();
  std::erase(leftovers, "--");  // CLI11 leaves over what ends the flags
  if (leftovers.empty()) return;
  const auto& word = leftovers.front();
  const bool is_flag = word.starts_with("-");
  if (!is_flag && chosen.empty()) reject_unknown_job(command, word);
  if (!is_flag) check(false, "unexpected argument '", word, "'");
  const auto guess = nearest_flag(command, word);
  check(false, "no flag '", word, "'",
        guess.empty() ? "; see --help" : "; did you mean '" + guess + "'?");
}

// A path that looks like a setting is the likely reason for a missing input.
std::string hint_of_path(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    std::error_code ignored;  // a setting may be longer than any path
    if (!is_setting(word) || !std::filesystem::exists(word, ignored)) continue;
    return fmt::format("; '{0}' is read as a setting, write ./{0} if it is a path", word);
  }
  return "";
}

// Reads the flags and runs; --help is answered here.  `speaker` becomes the whole command, whose
// job is known once the words are read.
int run_verb(const std::string& name, int argc, char** argv, std::string& speaker) {
  const auto declared = command_of(name);
  auto& command = *declared.command;
  const auto name_job = [&] {
    for (const auto* job : command.get_subcommands()) speaker += " " + job->get_name();
  };
  try {
    command.parse(argc, argv);
    name_job();
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_text(command, stdout_columns()));
    return kSuccess;
  } catch (const CLI::RequiredError& error) {
    name_job();
    reject_leftovers(command);  // a misspelt flag is the likelier reason for a missing one
    check(false, error.what(), hint_of_path({argv + 1, argv + argc}));
  } catch (const CLI::ParseError& error) {
    name_job();
    check(false, error.what());
  }
  reject_leftovers(command);
  declared.verb->common().check();
  return declared.verb->run();
}

// Whatever the exception says, users and their scripts get one line.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int run_word(const std::string& word, int argc, char** argv, std::string& speaker) {
  if (word == "--help" || word == "-h" || word == "help") {
    fmt::print("{}", overview());
    return kSuccess;
  }
  if (word == "--version") {
    fmt::print("kelvin {} ({})\n", kVersion, kCommit);
    return kSuccess;
  }
  if (word.empty() || word.starts_with("-")) {
    check(false, word.empty() ? "" : "no flag '" + word + "': ", "a verb is required; there are: ",
          join(verbs().names(), ", "));
  }
  return run_verb(word, argc - 1, argv + 1, speaker);
}

int run_tool(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  const bool is_verb = verbs().entries().contains(word);
  auto speaker = is_verb ? "kelvin " + word : std::string("kelvin");
  try {
    const int code = run_word(word, argc, argv, speaker);
    const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    check(is_written, "stdout: cannot write: ", std::strerror(errno));
    return code;
  } catch (const Error& error) {
    print_for_people(fmt::format("{}: {}\n", speaker, one_line(error.what())));
    return kUserError;
  } catch (const std::filesystem::filesystem_error& error) {
    // No right to look, a name too long, a full disk: nothing we can mend.
    print_for_people(fmt::format("{}: {}: {}\n", speaker, one_line(error.path1().string()),
                                 error.code().message()));
    return kUserError;
  } catch (const std::system_error& error) {  // what fmt throws when stdout takes no more
    print_for_people(
        fmt::format("{}: stdout: cannot write: {}\n", speaker, error.code().message()));
    return kUserError;
  } catch (const std::bad_alloc&) {
    print_for_people(fmt::format("{}: not enough memory for this request\n", speaker));
    return kUserError;
  } catch (const std::exception& error) {
    print_for_people(fmt::format("{}: internal error: {}\n", speaker, one_line(error.what())));
  } catch (...) {
    print_for_people(fmt::format("{}: internal error: unknown exception\n", speaker));
  }
  return kInternalError;
}

}  // namespace
}  // namespace kelvin

int main(int argc, char** argv) { return kelvin::run_tool(argc, argv); }
