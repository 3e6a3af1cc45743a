#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/mutations.h"

namespace kelvin {

// Every file below a folder with its content, every folder and link with what it is; but for the
// lock, which comes and goes.
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto name = entry.path().lexically_relative(folder).string();
    if (name == "lock" || name.ends_with("/lock")) continue;
    if (entry.is_symlink()) {
      contents[name] = "link to " + fs::read_symlink(entry.path()).string();
    } else {
      contents[name] = entry.is_regular_file() ? whole_file(entry.path()) : "folder";
    }
  }
  return contents;
}

// Names of what differs between two contents, for messages.
inline std::string differences(const std::map<std::string, std::string>& before,
                               const std::map<std::string, std::string>& after) {
  std::string names;
  for (const auto& [name, content] : before) {
    const auto found = after.find(name);
    if (found == after.end()) names += " -" + name;
    if (found != after.end() && found->second != content) names += " *" + name;
  }
  for (const auto& [name, content] : after) {
    if (!before.contains(name)) names += " +" + name;
  }
  return names;
}

// Damages one file of a run folder; the same seed always gives the same damage.
class RunDamage {
 public:
  explicit RunDamage(uint32_t seed) : random_(seed), bytes_(seed), text_(seed) {}

  // What was done, for messages.
  std::string damage(const std::filesystem::path& run) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      const bool is_file = entry.is_regular_file() && !entry.is_symlink();
      if (is_file && entry.path().filename() != "lock") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    const auto file = files.at(below(files.size()));
    const auto name = file.lexically_relative(run).string();
    switch (below(10)) {
      case 0:
        fs::remove(file);
        return name + " removed";
      case 1:
        fs::remove(file);
        fs::create_directory(file);
        return name + " made a folder";
      case 2:
        write(file, "");
        return name + " emptied";
      case 3:
        write(file, whole_file(file).substr(0, below(whole_file(file).size())));
        return name + " cut";
      case 4:
        write(file, bytes_.mutated(whole_file(file)));
        return name + " with other bytes";
      case 5:
        if (!is_text(file)) break;
        write(file, text_.mutated(whole_file(file)));
        return name + " with other text";
      default:
        break;
    }
    write(file, changed(file));
    return name + " with another value";
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  static void write(const std::filesystem::path& file, const std::string& content) {
    write_file_atomically(file, content);
  }

  static bool is_text(const std::filesystem::path& file) {
    const auto extension = file.extension();
    return extension != ".safetensors" && extension != ".npz";
  }

  // Keys removed, values of other types and beyond any range.
  std::string changed(const std::filesystem::path& file) {
    const auto content = whole_file(file);
    if (file.extension() == ".json") return changed_json(content, 1);
    if (file.extension() == ".jsonl")
      return changed_line(content, [&](const std::string& line) { return changed_json(line, -1); });
    if (file.extension() == ".toml")
      return changed_line(content, [&](const std::string& line) { return changed_setting(line); });
    return bytes_.mutated(content);
  }

  std::string changed_json(const std::string& text, int indent) {
    auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return bytes_.mutated(text);
    auto* value = &json;
    while (value->is_structured() && !value->empty()) {
      auto* inner = &*std::next(value->begin(), static_cast<int64_t>(below(value->size())));
      const bool is_deep_enough = !inner->is_structured() || inner->empty() || below(3) == 0;
      if (is_deep_enough) {
        change(*value, *inner);
        break;
      }
      value = inner;
    }
    return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           (indent > 0 ? "\n" : "");
  }

  void change(nlohmann::ordered_json& parent, nlohmann::ordered_json& value) {
    if (below(3) == 0) {
      const auto place = std::find_if(parent.begin(), parent.end(),
                                      [&](const auto& each) { return &each == &value; });
      parent.erase(place);
      return;
    }
    const std::vector<nlohmann::ordered_json> others = {nullptr,
                                                        true,
                                                        -1,
                                                        0,
                                                        1,
                                                        0.5,
                                                        1e308,
                                                        -1e-300,
                                                        "",
                                                        "x",
                                                        "\n\x1b",
                                                        INT64_MAX,
                                                        INT64_MIN,
                                                        UINT64_MAX,
                                                        nlohmann::ordered_json::array(),
                                                        nlohmann::ordered_json::object(),
                                                        {1, "two", nullptr},
                                                        {{"key", {{"key", 1}}}},
                                                        std::string(5000, 'y')};
    value = others.at(below(others.size()));
  }

  std::string changed_line(const std::string& content,
                           const std::function<std::string(const std::string&)>& changed) {
    std::istringstream stream(content);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    if (lines.empty()) return "x";
    auto& line = lines.at(below(lines.size()));
    line = changed(line);
    std::string text;
    for (const auto& each : lines) text += each + "\n";
    return text;
  }

  std::string changed_setting(const std::string& line) {
    const auto equals = line.find(" = ");
    if (equals == std::string::npos || below(6) == 0) return "";
    static const std::vector<std::string> kOthers = {"nan",
                                                     "inf",
                                                     "-1",
                                                     "0",
                                                     "1",
                                                     "2",
                                                     "1e-46",
                                                     "1e300",
                                                     "9223372036854775807",
                                                     "true",
                                                     "\"x\"",
                                                     "[]",
                                                     "[1]",
                                                     "\"\"",
                                                     "-0.5",
                                                     "0.5",
                                                     "\"a\\nb\"",
                                                     "1979-05-27",
                                                     "{}",
                                                     "[[1]]",
                                                     "[\"x\", \"x\"]",
                                                     "-9223372036854775808"};
    return line.substr(0, equals) + " = " + kOthers.at(below(kOthers.size()));
  }

  std::mt19937 random_;
  Mutator bytes_;
  TextMutator text_;
};

// Work on a damaged run gives a value, or an Error or whatever else main() tells in one line with
// exit code 2; and it leaves the folder as it was unless it gave a value.
inline void expect_value_or_unchanged(const std::filesystem::path& run, const std::string& what,
                                      const std::function<void()>& work) {
  const auto before = contents_of(run);
  try {
    work();
    return;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty()) << what;
  } catch (const std::filesystem::filesystem_error&) {
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": not a kelvin::Error: " << error.what();
  }
  const auto after = contents_of(run);
  EXPECT_TRUE(after == before) << what << " changed" << differences(before, after);
}

}  // namespace kelvin
