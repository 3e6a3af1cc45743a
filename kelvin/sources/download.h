#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace kelvin {

// Where a mirror's file really is:
//   http://... or https://...    as it is
//   npm:NAME@VERSION             the package in registry.npmjs.org
//   debian:NAME_VERSION_ARCH     the package in deb.debian.org, if its source has the same name
// Anything else is an Error.
std::string address_of(const std::string& mirror);

// The plain file name that ends an address, without what follows a `?` or `#`; an Error if the
// address ends in a folder.
std::string file_name_of(const std::string& address);

struct DownloadOptions {
  std::function<void(int64_t bytes)> progress = {};  // how many are there by now; called often
  std::function<bool()> should_stop = {};            // asked often
  double connect_seconds = 15;
  // Slower than this for so long is given up.
  int64_t least_bytes_per_second = 500;
  int64_t slow_seconds = 30;
  // A cut connection is resumed as long as each brings this much, and so many times without.
  int64_t least_progress_bytes = 1 << 16;
  int attempts_without_progress = 3;
  double pause_seconds = 1;  // before each new attempt
};

enum class DownloadEnd { complete, stopped };

// Fetches an http or https address of `bytes` bytes, at the end of what `target` holds already.
// What is there is not looked at: its checksum is for the caller to verify.  A server that cannot
// continue is asked for everything.  An Error says why the server could not deliver, a DiskError
// why the target could not take it; what arrived stays in the target, unless it cannot be part of
// the file because there is more of it than `bytes`.
//
// Thread-safe.  Certificates are verified, at most five redirections followed, and proxies taken
// from the environment by libcurl.
DownloadEnd download(const std::string& address, const std::filesystem::path& target, int64_t bytes,
                     const DownloadOptions& options = {});

}  // namespace kelvin
