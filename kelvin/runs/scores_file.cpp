#include "kelvin/runs/scores_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <sstream>
#include <tuple>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kColumns = "population,score";
constexpr auto kColumnsWithName = "population,score,name";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct Encoding {
  std::string_view plain;
  std::string_view encoded;
};
// A dataset may be called by a path, which cannot be the name of a file: slashes are written as in
// addresses of the web, and so is what cannot stand in a cell.
constexpr std::array kEncodings = {Encoding{"%", "%25"}, Encoding{"/", "%2F"}};
constexpr std::array kCellEncodings = {Encoding{",", "%2C"}, Encoding{"\"", "%22"},
                                       Encoding{"\n", "%0A"}, Encoding{"\r", "%0D"}};

std::string name_of(const Scores& scores) { return scores.detector + "@" + scores.ood; }

std::string file_name_of(std::string name) {
  for (const auto& each : kEncodings) name = replaced(name, each.plain, each.encoded);
  return name;
}

std::string cell_of(const std::string& name) {
  auto cell = file_name_of(name);
  for (const auto& each : kCellEncodings) cell = replaced(cell, each.plain, each.encoded);
  return cell;
}

std::string decoded(std::string text) {
  for (const auto& each : kCellEncodings) text = replaced(text, each.encoded, each.plain);
  return replaced(replaced(text, "%2F", "/"), "%25", "%");
}

// Without extension.  File systems take 255 bytes, of which the extensions need some: a longer name
// is its beginning and a number that stands for the whole, which is then in the file.
std::string stem_of(const Scores& scores) {
  constexpr size_t kMost = 240;
  constexpr size_t kBeginning = 200;
  const auto name = file_name_of(name_of(scores));
  if (name.size() <= kMost) return name;
  auto end = kBeginning;
  // Neither a letter of several bytes nor an encoded one is cut through.
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  if (const auto percent = name.rfind('%', end);
      percent != std::string::npos && percent + 3 > end) {
    end = percent;
  }
  return fmt::format("{}~{:016x}", name.substr(0, end), derive_seed(0, name));
}

void append_lines(std::string& text, std::string_view population,
                  const std::vector<double>& scores) {
  for (const double score : scores) {
    fmt::format_to(std::back_inserter(text), "{},{}\n", population, score);
  }
}

Scores load_file(const fs::path& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  const bool has_name = line == kColumnsWithName;
  check(has_name || line == kColumns, path.string(), ": line 1: must be ", kColumns, ", got '",
        line, "'");
  auto name = decoded(path.stem().string());
  Scores scores;
  for (int64_t number = 2; std::getline(lines, line); ++number) {
    const auto cells = split(line, ',');
    const bool is_id = cells[0] == "id";
    double score = 0;
    bool is_score = (is_id || cells[0] == "ood") && cells.size() == (has_name ? 3U : 2U);
    if (is_score) {
      const char* end = cells[1].data() + cells[1].size();
      const auto parsed = std::from_chars(cells[1].data(), end, score);
      is_score = parsed.ec == std::errc() && parsed.ptr == end;
    }
    check(is_score, path.string(), ": line ", number, ": must be ",
          has_name ? kColumnsWithName : kColumns, ", got '", line, "'");
    (is_id ? scores.id_scores : scores.ood_scores).push_back(score);
    if (has_name && number == 2) name = decoded(cells[2]);
  }
  const auto at = name.find('@');
  scores.detector = name.substr(0, at);
  scores.ood = at == std::string::npos ? "" : name.substr(at + 1);
  return scores;
}

}  // namespace

void write_scores(const fs::path& folder, const Scores& scores) {
  const auto stem = stem_of(scores);
  const bool has_name = stem != file_name_of(name_of(scores));
  std::string text;
  append_lines(text, "id", scores.id_scores);
  append_lines(text, "ood", scores.ood_scores);
  if (has_name) {
    text = replaced(text, "\n", ",\n");
    if (const auto end = text.find('\n'); end != std::string::npos) {
      text.insert(end, cell_of(name_of(scores)));
    }
  }
  text = std::string(has_name ? kColumnsWithName : kColumns) + "\n" + text;
  std::error_code failure;
  fs::create_directories(folder, failure);
  check(!failure, folder.string(), ": cannot be made: ", failure.message());
  write_file_atomically(folder / (stem + ".csv"), text);
}

std::vector<Scores> load_scores(const fs::path& folder) {
  std::vector<Scores> all;
  if (!fs::exists(folder)) return all;
  check(fs::is_directory(folder), folder.string(), ": is a file, must be a folder");
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".csv") all.push_back(load_file(file.path()));
  }
  std::sort(all.begin(), all.end(), [](const Scores& a, const Scores& b) {
    return std::tie(a.detector, a.ood) < std::tie(b.detector, b.ood);
  });
  return all;
}

}  // namespace kelvin
