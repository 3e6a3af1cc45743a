#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/sources/download.h"
#include "kelvin/sources/known_dataset.h"

namespace kelvin {

enum class FetchStep { downloading, unpacking };

struct FetchProgress {
  FetchStep step = FetchStep::downloading;
  std::string file_name = {};
  int64_t done = 0;  // bytes of the file
  int64_t total = 0;
};

struct FetchOptions {
  // The address of a folder that holds the files under their publishers' names; tried first.
  std::string extra_mirror = {};
  // Replace the dataset's folder even if it holds files that do not belong to the dataset.
  bool force = false;
  std::function<void(const FetchProgress&)> progress = {};
  std::function<void(const std::string&)> notice = {};  // a line about what went wrong so far
  std::function<bool()> should_stop = {};
  DownloadOptions limits = {};  // its callbacks are not used
};

enum class FetchOutcome { already_there, fetched, stopped };

struct FetchReport {
  FetchOutcome outcome = FetchOutcome::already_there;
  std::filesystem::path folder = {};
  std::vector<std::string> addresses = {};  // that delivered
  int64_t bytes = 0;                        // of the downloads
};

// Brings a dataset below `data_folder`, in its first layout.  One that is there and verifies is
// left alone.  Routes and their mirrors are tried in order; what fails everywhere is an Error that
// names each with its reason.
//
// Downloads grow in `.partial` and stay there when a connection fails or the user stops, so that
// the next call goes on from there.  All files are put together beside the data, checked against
// the published sizes and sums and then moved into place as one folder: whenever this process ends,
// there is either the old folder or the new one.
FetchReport fetch(const KnownDataset& dataset, const std::filesystem::path& data_folder,
                  const FetchOptions& options = {});

}  // namespace kelvin
