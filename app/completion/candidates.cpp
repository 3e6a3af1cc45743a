#include "app/completion/candidates.h"

#include <algorithm>

#include "app/cli/catalog_file.h"
#include "app/cli/help_text.h"
#include "app/cli/setting_words.h"
#include "app/cli/verb.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

using Words = std::vector<std::string>;

// Where in a command the words have led.
struct Place {
  const CLI::App* command;
  const CLI::Option* flag = nullptr;  // whose value comes next
  size_t arguments = 0;               // that there were so far
  bool has_flags = true;              // until "--"
};

const CLI::Option* flag_named(const CLI::App& command, const std::string& word) {
  const auto* option = command.get_option_no_throw(word.substr(0, word.find('=')));
  return option == nullptr || option->get_positional() ? nullptr : option;
}

bool takes_value(const CLI::Option& flag) { return flag.get_items_expected_max() > 0; }

const CLI::App* job_named(const CLI::App& command, const std::string& word) {
  for (const auto* job : jobs_of(command)) {
    if (job->get_name() == word) return job;
  }
  return nullptr;
}

void pass(Place& place, const std::string& word) {
  if (place.flag != nullptr) {
    place.flag = nullptr;
  } else if (place.has_flags && word == "--") {
    place.has_flags = false;
  } else if (place.has_flags && word.starts_with("-")) {
    const auto* flag = flag_named(*place.command, word);
    const bool has_value = word.find('=') != std::string::npos;
    if (flag != nullptr && takes_value(*flag) && !has_value) place.flag = flag;
  } else if (const auto* job = job_named(*place.command, word); job != nullptr) {
    place.command = job;
  } else if (!is_setting(word)) {
    ++place.arguments;
  }
}

// The argument that the next word would be; null if there are no more.
const CLI::Option* next_argument(const Place& place) {
  auto before = place.arguments;
  for (const auto* option : positionals_of(*place.command)) {
    if (option->get_type_name() == kSettingType) continue;
    if (before == 0 || takes_several(*option)) return option;
    --before;
  }
  return nullptr;
}

void add(Candidates& found, const std::string& typed, const std::string& word,
         const std::string& meaning) {
  if (word.starts_with(typed)) found.words.push_back({word, meaning});
}

// Of "a,b,c" only the last name is completed, by one that is not there yet.
void add_values(Candidates& found, const CLI::Option& option, const std::string& typed,
                const std::string& before = "") {
  const auto type = value_type(option);
  found.paths = type.paths;
  const auto done = type.is_list ? typed.substr(0, typed.rfind(',') + 1) : "";
  const auto listed = split(done, ',');
  const auto offer = [&](const std::string& value, const std::string& meaning) {
    const bool is_new = std::find(listed.begin(), listed.end(), value) == listed.end();
    if (is_new) add(found, before + typed, before + done + value, meaning);
  };
  for (const auto& choice : type.choices) {
    const auto kind = listed_kind(choice);
    if (kind.empty()) {
      offer(choice, "");
      continue;
    }
    for (const auto& entry : catalog_entries(kind)) offer(entry.name, entry.summary);
  }
}

void add_flags(Candidates& found, const CLI::App& command, const std::string& typed) {
  for (const auto* option : command.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    const auto& names = option->get_lnames();
    const auto name = names.empty() ? "-" + option->get_snames().front() : "--" + names.front();
    add(found, typed, name, description_of(*option));
  }
}

Candidates verbs_and_flags(const std::string& typed) {
  Candidates found;
  for (const auto& [name, verb] : verbs().entries()) add(found, typed, name, verb.summary);
  if (!typed.starts_with("-")) return found;
  add(found, typed, "--help", "the verbs");
  add(found, typed, "--version", "version and commit");
  return found;
}

Candidates candidates_at(const Place& place, const std::string& typed) {
  Candidates found;
  if (place.flag != nullptr) {
    add_values(found, *place.flag, typed);
    return found;
  }
  if (place.has_flags && typed.starts_with("-")) {
    const auto equals = typed.find('=');
    if (equals == std::string::npos) {
      add_flags(found, *place.command, typed);
    } else if (const auto* flag = flag_named(*place.command, typed); flag != nullptr) {
      add_values(found, *flag, typed.substr(equals + 1), typed.substr(0, equals + 1));
    }
    return found;
  }
  for (const auto* job : jobs_of(*place.command)) {
    add(found, typed, job->get_name(), job->get_description());
  }
  if (const auto* argument = next_argument(place); argument != nullptr) {
    add_values(found, *argument, typed);
  }
  // Where nothing else is expected, flags are.
  const bool is_anything_expected = !found.words.empty() || found.paths != Paths::none;
  if (typed.empty() && !is_anything_expected) add_flags(found, *place.command, typed);
  return found;
}

}  // namespace

Candidates candidates(const Words& words) {
  if (words.empty()) return {};
  if (words.size() == 1) return verbs_and_flags(words.front());
  if (!verbs().entries().contains(words.front())) return {};
  const auto declared = command_of(words.front());
  Place place{.command = declared.command.get()};
  for (auto word = words.begin() + 1; word != words.end() - 1; ++word) pass(place, *word);
  return candidates_at(place, words.back());
}

}  // namespace kelvin
