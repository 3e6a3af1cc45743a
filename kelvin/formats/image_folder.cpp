#include "kelvin/formats/image_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr int64_t kMostListBytes = int64_t{1} << 30;

namespace fs = std::filesystem;

// Far beyond any dataset; a damaged label must not ask for a billion class names.
constexpr int64_t kMostClasses = 1'000'000;
constexpr int64_t kUnlabelled = -1;

// In small letters.
std::string extension_of(const fs::path& path) {
  auto extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return extension;
}

bool is_image_name(const fs::path& path) {
  const auto extension = extension_of(path);
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// Pictures of kinds that we cannot read: to leave them out in silence would be another dataset.
bool is_other_picture(const std::string& extension) {
  constexpr std::array<std::string_view, 11> kOthers = {
      ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".avif", ".heic", ".jfif"};
  return std::find(kOthers.begin(), kOthers.end(), extension) != kOthers.end();
}

// How many files there are of each kind that we cannot read.
using OtherPictures = std::map<std::string, int64_t>;

void check_all_are_read(const OtherPictures& others, const fs::path& folder) {
  int64_t count = 0;
  std::vector<std::string> kinds;
  for (const auto& [extension, files] : others) {
    count += files;
    kinds.push_back(std::to_string(files) + " " + extension);
  }
  check(count == 0, folder.string(), ": holds ", count, count == 1 ? " picture" : " pictures",
        " of kinds that are not read (", join(kinds, ", "),
        "); must be .jpg, .jpeg or .png: convert them, or move them away");
}

// What is in a folder except for names that begin with a dot, sorted.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(*entry);
  }
  check(!error, folder.string(), ": cannot list the folder: ", error.message());
  std::sort(entries.begin(), entries.end(), [](const auto& left, const auto& right) {
    return left.path().filename().native() < right.path().filename().native();
  });
  return entries;
}

// Behind links.  A link that leads nowhere is an Error only if it is named like an image.
fs::file_type type_of(const fs::directory_entry& entry) {
  std::error_code error;
  const auto type = entry.status(error).type();
  const bool is_there = type != fs::file_type::not_found && type != fs::file_type::none;
  check(is_there || !is_image_name(entry.path()), entry.path().string(),
        ": must be a file, is a link that leads nowhere");
  return type;
}

// The images of one class.  Folders are compared as whole paths and files by name, the order of
// Python's sorted(os.walk()).
class ClassScan {
 public:
  void walk(const fs::path& folder) {
    std::error_code error;
    const auto real = fs::canonical(folder, error);
    check(!error, folder.string(), ": cannot read: ", error.message());
    // A folder that several links lead to is read once; thus a cycle of links ends.
    if (!seen_.insert(real.native()).second) return;
    for (const auto& entry : entries_of(folder)) {
      const auto type = type_of(entry);
      if (type == fs::file_type::directory) {
        walk(entry.path());
      } else if (type == fs::file_type::regular && is_image_name(entry.path())) {
        found_.emplace_back(folder.native(), entry.path().filename().native());
      } else if (const auto extension = extension_of(entry.path()); is_other_picture(extension)) {
        ++others_[extension];
      }
    }
  }

  const OtherPictures& others() const { return others_; }

  std::vector<fs::path> sorted_paths() {
    std::sort(found_.begin(), found_.end());
    std::vector<fs::path> paths;
    paths.reserve(found_.size());
    for (const auto& [folder, name] : found_) paths.push_back(fs::path(folder) / name);
    return paths;
  }

 private:
  std::set<std::string> seen_;
  std::vector<std::pair<std::string, std::string>> found_;  // folder and name
  OtherPictures others_;
};

void add_class(LabelledFiles& files, OtherPictures& others, const fs::path& folder,
               const std::string& name) {
  ClassScan scan;
  scan.walk(folder);
  for (const auto& [extension, count] : scan.others()) others[extension] += count;
  auto paths = scan.sorted_paths();
  check(!paths.empty() || !scan.others().empty(), folder.string(),
        ": must hold .jpg, .jpeg or .png files for its class, has none");
  const auto label = static_cast<int64_t>(files.class_names.size());
  files.class_names.push_back(name);
  files.labels.insert(files.labels.end(), paths.size(), label);
  std::move(paths.begin(), paths.end(), std::back_inserter(files.paths));
}

// At most this much of a stranger's text goes into a message, and no control characters.
std::string excerpt(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string part(text.substr(0, kLongest));
  std::replace_if(
      part.begin(), part.end(), [](unsigned char letter) { return letter < ' '; }, '?');
  return text.size() > kLongest ? part + "..." : part;
}

struct ListLine {
  std::string_view path;
  int64_t label = 0;
};

ListLine parse_line(std::string_view line, const std::string& where) {
  const auto gap = line.find_last_of(" \t");
  check(gap != std::string_view::npos, where, ": must be 'path label', got '", excerpt(line), "'");
  const auto text = line.substr(gap + 1);
  int64_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  check(is_number && label >= kUnlabelled && label < kMostClasses, where,
        ": label must be a whole number from -1 to ", kMostClasses - 1, ", got '", excerpt(text),
        "'");
  return {.path = line.substr(0, line.find_last_not_of(" \t", gap) + 1), .label = label};
}

fs::path path_below(const fs::path& root, std::string_view text, const std::string& where) {
  const auto path = fs::path(text).lexically_normal();
  const bool is_inside = path.is_relative() && *path.begin() != "..";
  const bool names_a_file = path.has_filename() && path != ".";
  check(is_inside && names_a_file && text.find('\0') == std::string_view::npos, where,
        ": must name a file below the folder of the images, got '", excerpt(text), "'");
  return root / path;
}

std::vector<std::string> class_names_of(const std::vector<int64_t>& labels) {
  const auto largest = *std::max_element(labels.begin(), labels.end());
  if (largest == kUnlabelled) return {"unlabelled"};
  std::vector<std::string> names;
  for (int64_t label = 0; label <= largest; ++label) names.push_back(std::to_string(label));
  return names;
}

}  // namespace

LabelledFiles scan_image_folder(const fs::path& folder) {
  std::vector<std::string> class_names;
  for (const auto& entry : entries_of(folder)) {
    if (type_of(entry) == fs::file_type::directory) {
      class_names.push_back(entry.path().filename().string());
    }
  }
  return scan_image_folder(folder, class_names);
}

LabelledFiles scan_image_folder(const fs::path& folder,
                                const std::vector<std::string>& class_names) {
  check(!class_names.empty(), folder.string(), ": must hold a folder per class, has none");
  LabelledFiles files;
  OtherPictures others;
  for (const auto& name : class_names) {
    std::error_code error;
    check(fs::is_directory(folder / name, error), (folder / name).string(),
          ": the folder of this class is missing");
    add_class(files, others, folder / name, name);
  }
  check_all_are_read(others, folder);
  return files;
}

LabelledFiles read_image_list(const fs::path& list, const fs::path& root) {
  const auto content = read_stored_file(list, kMostListBytes);
  LabelledFiles files;
  std::string_view rest = content;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const auto length = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) continue;
    const auto where = list.string() + ": line " + std::to_string(number);
    const auto [path, label] = parse_line(line, where);
    check(files.labels.empty() || (files.labels.front() == kUnlabelled) == (label == kUnlabelled),
          where, ": a list must have labels or -1 throughout, got ", label, " after ",
          files.labels.empty() ? 0 : files.labels.front());
    files.paths.push_back(path_below(root, path, where));
    files.labels.push_back(label);
  }
  check(!files.labels.empty(), list.string(), ": must list images, is empty");
  files.class_names = class_names_of(files.labels);
  std::replace(files.labels.begin(), files.labels.end(), kUnlabelled, int64_t{0});
  return files;
}

}  // namespace kelvin
