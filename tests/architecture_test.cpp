#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin::architecture_test {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

// The architecture: what each folder may include besides itself.
const std::map<std::string, Folders> kMayInclude = {
    {"core", {}},
    {"formats", {"core"}},
    {"statistics", {"core"}},
    {"sources", {"core", "formats"}},
    {"runs", {"core", "formats"}},
    {"report", {"core", "formats", "statistics", "runs"}},
    {"kernels", {"core"}},
    {"ops", {"core", "kernels"}},
    {"numerics", {"core", "kernels", "ops", "statistics"}},
    {"retrieval", {"core", "numerics", "ops"}},
    {"language", {"core", "formats", "numerics", "ops", "model"}},
    {"data", {"core", "formats", "sources", "ops"}},
    {"model", {"core", "formats", "ops"}},
    {"train", {"core", "ops", "data", "model"}},
    {"measures", {"core", "ops", "numerics", "statistics", "model"}},
    {"experiment",
     {"core", "formats", "statistics", "sources", "runs", "ops", "numerics", "retrieval",
      "language", "data", "model", "train", "measures"}},
    {"app",
     {"core", "formats", "statistics", "sources", "runs", "report", "ops", "numerics", "retrieval",
      "language", "data", "model", "train", "measures", "experiment"}},
};

// All that measures see of a model.
const std::set<std::string> kModelHeadersOfMeasures = {"kelvin/model/record.h"};

// What must start fast links no LibTorch.
const Folders kWithoutTorch = {"core", "formats", "statistics", "sources",
                               "runs", "report",  "kernels",    "app"};

fs::path root() { return KELVIN_SOURCE_DIR; }

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp";
}

// Headers and sources, relative to the repository.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : fs::recursive_directory_iterator(root() / folder)) {
    if (file.is_regular_file() && is_source(file.path())) {
      files.push_back(fs::relative(file.path(), root()).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every source below kelvin/ and app/.
std::vector<std::string> all_sources() {
  auto sources = files_below("app");
  const auto library = files_below("kelvin");
  sources.insert(sources.end(), library.begin(), library.end());
  return sources;
}

// "kelvin/core/check.h" lies in "core", "app/verbs/train.cpp" in "app".
std::string folder_of(const fs::path& path) {
  auto part = path.begin();
  if (*part == "kelvin") ++part;
  return part->string();
}

// What stands between the quotes or brackets of each #include.
std::vector<std::string> includes_of(const std::string& source) {
  std::vector<std::string> includes;
  std::ifstream file(root() / source);
  for (std::string line; std::getline(file, line);) {
    const auto hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const auto word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const auto open = line.find_first_of("<\"", word);
    const auto close = line.find_first_of(">\"", open + 1);
    if (open == std::string::npos || close == std::string::npos) continue;
    includes.push_back(line.substr(open + 1, close - open - 1));
  }
  return includes;
}

bool is_ours(const std::string& include) {
  return include.starts_with("kelvin/") || include.starts_with("app/");
}

bool is_torch(std::string_view include) {
  return include.starts_with("torch/") || include.starts_with("ATen/") ||
         include.starts_with("c10/") || include.starts_with("caffe2/");
}

// The first header of LibTorch that `source` includes, itself or by others of ours; empty if none.
std::string torch_header_behind(const std::string& source, std::set<std::string>& seen) {
  if (!seen.insert(source).second) return "";
  for (const auto& include : includes_of(source)) {
    if (is_torch(include)) return source + " includes " + include;
    if (!is_ours(include)) continue;
    const auto found = torch_header_behind(include, seen);
    if (!found.empty()) return found;
  }
  return "";
}

TEST(Architecture, HasAPlaceForEveryFolder) {
  const auto sources = all_sources();
  ASSERT_GT(sources.size(), 50U);
  for (const auto& source : sources) {
    EXPECT_TRUE(kMayInclude.contains(folder_of(source)))
        << source << ": its folder has no place in the architecture";
  }
}

TEST(Architecture, LetsIncludesPointLeftOnly) {
  for (const auto& source : all_sources()) {
    const auto folder = folder_of(source);
    if (!kMayInclude.contains(folder)) continue;
    for (const auto& include : includes_of(source)) {
      if (!is_ours(include) || folder_of(include) == folder) continue;
      EXPECT_TRUE(kMayInclude.at(folder).contains(folder_of(include)))
          << source << ": must not include " << include;
    }
  }
}

TEST(Architecture, KeepsModelsFromMeasures) {
  for (const auto& source : all_sources()) {
    if (folder_of(source) != "measures") continue;
    for (const auto& include : includes_of(source)) {
      if (!is_ours(include) || folder_of(include) != "model") continue;
      EXPECT_TRUE(kModelHeadersOfMeasures.contains(include)) << source << ": " << include;
    }
  }
}

TEST(Architecture, HasNoCycles) {
  for (const auto& [folder, others] : kMayInclude) {
    for (const auto& other : others) {
      EXPECT_FALSE(kMayInclude.at(other).contains(folder)) << folder << " and " << other;
    }
  }
}

TEST(Architecture, IncludesOurHeadersByTheirFullPath) {
  for (const auto& source : all_sources()) {
    for (const auto& include : includes_of(source)) {
      if (is_ours(include)) {
        EXPECT_TRUE(fs::exists(root() / include)) << source << ": " << include;
      } else {
        EXPECT_FALSE(fs::exists((root() / source).parent_path() / include))
            << source << ": " << include;
      }
    }
  }
}

TEST(Architecture, KeepsLibTorchOutOfWhatMustStartFast) {
  for (const auto& source : all_sources()) {
    if (!kWithoutTorch.contains(folder_of(source)) || source.starts_with("app/catalog/")) continue;
    std::set<std::string> seen;
    EXPECT_EQ(torch_header_behind(source, seen), "") << "reached from " << source;
  }
}

// kelvin/ops/parallel_for.h says why.
TEST(Architecture, HasOneParallelLoop) {
  const std::string allowed = "kelvin/ops/parallel_for.cpp";
  const std::regex others(
      R"(at::(parallel_for|parallel_reduce|launch|intraop_launch)\b|#pragma omp)");
  bool is_found = false;
  for (const auto& source : all_sources()) {
    std::ifstream file(root() / source);
    for (std::string line; std::getline(file, line);) {
      const auto code = line.substr(0, line.find("//"));
      if (!std::regex_search(code, others)) continue;
      EXPECT_EQ(source, allowed) << line;
      is_found = true;
    }
  }
  EXPECT_TRUE(is_found);
}

// Two types of one name in two libraries share weak symbols: code of one would run on the other.
TEST(Architecture, GivesEveryPublicTypeANameOfItsOwn) {
  std::map<std::string, std::string> owners;
  for (const auto& source : all_sources()) {
    if (fs::path(source).extension() != ".h") continue;
    std::ifstream file(root() / source);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind;
      std::string name;
      words >> kind >> name;
      if (kind == "enum" && name == "class") words >> name;
      const bool is_type = kind == "struct" || kind == "class" || kind == "enum";
      if (!is_type || line.starts_with(' ') || line.ends_with(';')) continue;
      const auto [owner, is_new] = owners.emplace(name, source);
      EXPECT_TRUE(is_new) << name << " is defined in " << source << " and " << owner->second;
    }
  }
  EXPECT_TRUE(owners.contains("Error"));
}

// A longer one holds two things, each of which a reader would look for under its own name.
TEST(Architecture, HasNoFileOfMoreThan400Lines) {
  auto files = all_sources();
  const auto tests = files_below("tests");
  files.insert(files.end(), tests.begin(), tests.end());
  for (const auto& name : files) {
    std::ifstream file(root() / name);
    const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    EXPECT_LE(lines, 400) << name;
  }
}

TEST(Architecture, HasATestForEverySourceOfTheLibrary) {
  for (const auto& source : all_sources()) {
    const fs::path path = source;
    if (folder_of(source) == "app" || path.extension() != ".cpp") continue;
    const auto test = fs::path("tests") / path.parent_path().lexically_relative("kelvin") /
                      (path.stem().string() + "_test.cpp");
    EXPECT_TRUE(fs::exists(root() / test)) << source << ": has no " << test.generic_string();
  }
}

}  // namespace kelvin::architecture_test
