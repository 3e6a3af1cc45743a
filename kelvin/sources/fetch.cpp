#include "kelvin/sources/fetch.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/assemble.h"
#include "kelvin/sources/download.h"
#include "kelvin/sources/md5_sum.h"
#include "kelvin/sources/partial_file.h"
#include "kelvin/sources/staging.h"
#include "kelvin/sources/stored_dataset.h"
#include "kelvin/sources/verify.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// Datasets that share a folder share their downloads and must not be fetched at once.
std::string lock_name(const Layout& layout) {
  auto name = layout.folder;
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::string published_name(const Download& download) {
  return file_name_of(address_of(download.mirrors.front()));
}

// A file in the folder that is not part of the layout; empty if there is none.
std::string ood_file(const fs::path& data_folder, const Layout& layout) {
  std::set<fs::path> known;
  for (const auto& file : all_files(layout)) {
    known.insert(data_folder / file.path);
    known.insert(data_folder / (file.path + ".gz"));
  }
  for (const auto& entry : fs::recursive_directory_iterator(data_folder / layout.folder)) {
    const bool is_folder = entry.is_directory() && !entry.is_symlink();
    if (!is_folder && !known.contains(entry.path())) return entry.path().string();
  }
  return {};
}

class Fetcher {
 public:
  Fetcher(const KnownDataset& dataset, const fs::path& data_folder, const FetchOptions& options)
      : dataset_(dataset),
        layout_(dataset.layouts.front()),
        data_folder_(data_folder),
        partial_folder_(data_folder / ".partial"),
        options_(options) {}

  FetchReport fetch() {
    if (is_there()) return {.outcome = FetchOutcome::already_there, .folder = found_folder_};
    check(!dataset_.routes.empty(), "cannot be fetched: ", dataset_.how_to_get);
    check_extra_mirror();
    check_target();
    {
      const DataLock lock(partial_folder_, lock_name(layout_));
      for (const auto& route : dataset_.routes) {
        if (try_route(route)) break;
      }
    }
    std::error_code ignored;  // others may have something in it
    fs::remove(partial_folder_, ignored);
    check(report_.has_value(), "no mirror could deliver it: ", join(failures_, "; "));
    return *report_;
  }

 private:
  bool is_there() {
    const auto* layout = find_layout(dataset_, data_folder_);
    if (layout == nullptr) return false;
    found_folder_ = data_folder_ / layout->folder;
    const auto verified = verify(dataset_, data_folder_);
    if (verified.verdict != DataVerdict::wrong) return true;
    note(verified.reason);
    return false;
  }

  void note(const std::string& line) const {
    if (options_.notice) options_.notice(line);
  }

  bool should_stop() const { return options_.should_stop && options_.should_stop(); }

  void check_extra_mirror() const {
    const auto& mirror = options_.extra_mirror;
    check(mirror.empty() || mirror.starts_with("http://") || mirror.starts_with("https://"),
          "the extra mirror must begin with http:// or https://, got '", mirror, "'");
  }

  // What is in the way must be ours to replace.
  void check_target() const {
    const auto target = data_folder_ / layout_.folder;
    const auto status = fs::symlink_status(target);
    if (!fs::exists(status)) return;
    check(fs::is_directory(status), target.string(), ": must be a folder, is a link or a file");
    if (options_.force) return;
    const auto ood = ood_file(data_folder_, layout_);
    check(ood.empty(), ood, ": is not part of the dataset and would be lost: move it away, ",
          "or force its removal");
  }

  std::vector<std::string> addresses_of(const Download& download) const {
    std::vector<std::string> addresses;
    if (!options_.extra_mirror.empty()) {
      auto base = options_.extra_mirror;
      while (base.ends_with('/')) base.pop_back();
      addresses.push_back(base + "/" + published_name(download));
    }
    for (const auto& mirror : download.mirrors) addresses.push_back(address_of(mirror));
    return addresses;
  }

  void show(FetchStep step, const std::string& file_name, int64_t done, int64_t total) const {
    if (options_.progress) options_.progress({step, file_name, done, total});
  }

  DownloadOptions download_options(const Download& download) const {
    auto options = options_.limits;
    options.should_stop = options_.should_stop;
    options.progress = [this, &download](int64_t bytes) {
      show(FetchStep::downloading, download.file_name, bytes, download.bytes);
    };
    return options;
  }

  // An Error if this mirror cannot deliver.
  DownloadEnd obtain_from(const std::string& address, const Download& wanted,
                          const fs::path& target) {
    std::error_code is_absent;
    const bool is_continued = fs::file_size(target, is_absent) > 0 && !is_absent;
    const auto end = download(address, target, wanted.bytes, download_options(wanted));
    if (end == DownloadEnd::stopped) return end;
    const auto md5 = md5_of_file(target);
    if (wanted.md5.empty() || md5 == wanted.md5) return end;
    fs::remove(target);
    // What was there before may have been wrong: that is not this mirror's fault.
    if (is_continued) return obtain_from(address, wanted, target);
    check(false, address, ": must have md5 ", wanted.md5, ", has ", md5);
    return end;
  }

  // Nothing if no mirror can deliver.
  std::optional<DownloadEnd> obtain(const Download& wanted) {
    const auto target = partial_folder_ / wanted.file_name;
    for (const auto& address : addresses_of(wanted)) {
      try {
        const auto end = obtain_from(address, wanted, target);
        addresses_.push_back(address);
        return end;
      } catch (const DiskError&) {
        throw;
      } catch (const Error& error) {
        note(error.what());
        failures_.emplace_back(error.what());
      }
    }
    std::error_code ignored;
    if (fs::file_size(target, ignored) == 0) fs::remove(target, ignored);  // nothing to go on from
    return std::nullopt;
  }

  // Whether the search is over, with a dataset or because it was told to stop.
  bool try_route(const Route& route) {
    addresses_.clear();
    std::vector<DownloadedFile> files;
    int64_t bytes = 0;
    for (const auto& wanted : route.downloads) {
      const auto end = obtain(wanted);
      if (!end) return false;
      if (*end == DownloadEnd::stopped || should_stop()) {
        report_ = {.outcome = FetchOutcome::stopped, .folder = data_folder_ / layout_.folder};
        return true;
      }
      files.push_back({published_name(wanted), partial_folder_ / wanted.file_name});
      bytes += wanted.bytes;
    }
    show(FetchStep::unpacking, route.downloads.front().file_name, 0, bytes);
    const bool is_installed = install(route, files);
    std::error_code ignored;
    for (const auto& file : files) fs::remove(file.path, ignored);
    if (is_installed) {
      report_ = {.outcome = FetchOutcome::fetched,
                 .folder = data_folder_ / layout_.folder,
                 .addresses = addresses_,
                 .bytes = bytes};
    }
    return is_installed;
  }

  // False if the downloads do not hold what they should.
  bool install(const Route& route, const std::vector<DownloadedFile>& files) {
    const StagingFolder staging(partial_folder_, lock_name(layout_));
    const auto root = staging.path() / "data";
    const auto scratch = staging.path() / "scratch";
    make_folders(root);
    make_folders(scratch);
    try {
      assemble(dataset_, route.unpacking, files, scratch, root);
    } catch (const DiskError&) {
      throw;
    } catch (const Error& error) {
      failures_.push_back(addresses_.front() + ": " + error.what());
      note(failures_.back());
      return false;
    }
    check_target();  // minutes have passed
    const auto target = data_folder_ / layout_.folder;
    make_folders(target.parent_path());
    sync_folder(root / layout_.folder);
    replace_folder(root / layout_.folder, target, staging.path() / "old");
    return true;
  }

  const KnownDataset& dataset_;
  const Layout& layout_;
  fs::path data_folder_;
  fs::path partial_folder_;
  const FetchOptions& options_;
  fs::path found_folder_;
  std::vector<std::string> failures_;
  std::vector<std::string> addresses_;
  std::optional<FetchReport> report_;
};

}  // namespace

FetchReport fetch(const KnownDataset& dataset, const fs::path& data_folder,
                  const FetchOptions& options) {
  try {
    return Fetcher(dataset, data_folder, options).fetch();
  } catch (const fs::filesystem_error& error) {
    throw DiskError(dataset.name + ": " + error.path1().string() + ": " + error.code().message());
  } catch (const DiskError& error) {
    throw DiskError(dataset.name + ": " + error.what());
  } catch (const Error& error) {
    throw Error(dataset.name + ": " + error.what());
  }
}

}  // namespace kelvin
