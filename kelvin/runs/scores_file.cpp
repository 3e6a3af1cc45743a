#include "kelvin/runs/scores_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <tuple>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// A dataset may be called by a path, which cannot be the name of a file: slashes are written as in
// addresses of the web.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string file_name_of(const std::string& name) {
  return replaced(replaced(name, "%", "%25"), "/", "%2F");
}

std::string name_of_file(const std::string& file_name) {
  return replaced(replaced(file_name, "%2F", "/"), "%25", "%");
}

Scores load_file(const fs::path& path) {
  const auto name = name_of_file(path.stem().string());
  const auto at = name.find('@');
  Scores scores{.detector = name.substr(0, at),
                .ood = at == std::string::npos ? "" : name.substr(at + 1),
                .id_scores = {},
                .ood_scores = {}};
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  for (int64_t number = 2; std::getline(lines, line); ++number) {
    const bool is_id = line.starts_with("id,");
    double score = 0;
    const char* end = line.data() + line.size();
    bool is_score = is_id || line.starts_with("ood,");
    if (is_score) {
      const auto parsed = std::from_chars(line.data() + line.find(',') + 1, end, score);
      is_score = parsed.ec == std::errc() && parsed.ptr == end;
    }
    check(is_score, path.string(), ": line ", number, ": must be population,score, got '", line,
          "'");
    (is_id ? scores.id_scores : scores.ood_scores).push_back(score);
  }
  return scores;
}

}  // namespace

void write_scores(const fs::path& folder, const Scores& scores) {
  std::string text = "population,score\n";
  for (const double score : scores.id_scores)
    fmt::format_to(std::back_inserter(text), "id,{}\n", score);
  for (const double score : scores.ood_scores) {
    fmt::format_to(std::back_inserter(text), "ood,{}\n", score);
  }
  std::error_code failure;
  fs::create_directories(folder, failure);
  check(!failure, folder.string(), ": cannot be made: ", failure.message());
  write_file_atomically(folder / (file_name_of(scores.detector + "@" + scores.ood) + ".csv"), text);
}

std::vector<Scores> load_scores(const fs::path& folder) {
  std::vector<Scores> all;
  if (!fs::is_directory(folder)) return all;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".csv") all.push_back(load_file(file.path()));
  }
  std::sort(all.begin(), all.end(), [](const Scores& a, const Scores& b) {
    return std::tie(a.detector, a.ood) < std::tie(b.detector, b.ood);
  });
  return all;
}

}  // namespace kelvin
