#include "app/cli/metadata.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "app/cli/machine.h"
#include "app/cli/version.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

std::string quoted_for_shell(const std::string& word) {
  constexpr auto kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return "'" + join(split(word, '\''), "'\\''") + "'";
}

}  // namespace

std::string shell_command(std::vector<std::string> words) {
  for (auto& word : words) word = quoted_for_shell(word);
  return join(words, " ");
}

std::string command_line() {
  auto words = split(read_file("/proc/self/cmdline"), '\0');
  words.pop_back();  // each word ends in a zero
  return shell_command(std::move(words));
}

nlohmann::ordered_json run_metadata(const nlohmann::ordered_json& library_versions) {
  nlohmann::ordered_json metadata;
  metadata["version"] = kVersion;
  metadata["commit"] = kCommit;
  metadata["command"] = command_line();
  metadata["started"] = fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  metadata["versions"] = library_versions;
  metadata["machine"] = machine_description();
  return metadata;
}

}  // namespace kelvin
