#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kelvin {

// JSON for stdout.  Paths and strangers' names need not be UTF-8, of which JSON is made: bytes that
// are none become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

// A run as tables of all runs below `root` call it; its whole path if it is the root itself.
inline std::string name_below(const std::filesystem::path& root, const std::filesystem::path& run) {
  const auto name = run.lexically_relative(root);
  return name.empty() || name == "." ? run.string() : name.string();
}

// Text for people, on stderr, line by line as shown_line makes it: what it quotes from files and
// names of folders does not steer the terminal and does not fill it.  That nobody can read it (a
// closed terminal, a full disk) must not end the work it is about: failures are ignored.
void print_for_people(std::string_view text);

// The same for what is meant to steer the terminal, byte by byte.
void steer_terminal(std::string_view bytes);

// The same for what did not stop the work, as one line.
void warn_people(const std::string& text);

}  // namespace kelvin
