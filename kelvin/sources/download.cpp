#include "kelvin/sources/download.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/partial_file.h"

namespace kelvin {
namespace {

constexpr std::string_view kNpm = "npm:";
constexpr std::string_view kDebian = "debian:";

// Names and versions become parts of an address: nothing in them may change its meaning.
bool is_plain(std::string_view text) {
  const auto is_allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') ||
           std::string_view("+-.~").find(letter) != std::string_view::npos;
  };
  return !text.empty() && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

std::string npm_address(const std::string& mirror) {
  const auto package = mirror.substr(kNpm.size());
  const auto at = package.rfind('@');
  check(at != std::string::npos && at > 0, "mirror '", mirror, "': must be npm:NAME@VERSION");
  const auto name = package.substr(0, at);
  const auto version = package.substr(at + 1);
  const auto slash = name.find('/');
  const bool is_scoped = name.starts_with('@') && slash != std::string::npos;
  const auto base = is_scoped ? name.substr(slash + 1) : name;
  check(is_plain(base) && is_plain(version) && (!is_scoped || is_plain(name.substr(1, slash - 1))),
        "mirror '", mirror, "': must be npm:NAME@VERSION");
  return "https://registry.npmjs.org/" + name + "/-/" + base + "-" + version + ".tgz";
}

std::string debian_address(const std::string& mirror) {
  const auto package = mirror.substr(kDebian.size());
  const auto parts = split(package, '_');
  check(parts.size() == 3 && std::all_of(parts.begin(), parts.end(), is_plain), "mirror '", mirror,
        "': must be debian:NAME_VERSION_ARCHITECTURE");
  const auto& name = parts.front();
  const auto shelf = name.substr(0, name.starts_with("lib") ? 4 : 1);
  return "http://deb.debian.org/debian/pool/main/" + shelf + "/" + name + "/" + package + ".deb";
}

}  // namespace

std::string address_of(const std::string& mirror) {
  if (mirror.starts_with("http://") || mirror.starts_with("https://")) return mirror;
  if (mirror.starts_with(kNpm)) return npm_address(mirror);
  if (mirror.starts_with(kDebian)) return debian_address(mirror);
  check(false, "mirror '", mirror, "': must begin with http://, https://, npm: or debian:");
  return {};
}

std::string file_name_of(const std::string& address) {
  const auto path = address.substr(0, address.find_first_of("?#"));
  auto name = path.substr(path.rfind('/') + 1);
  check(!name.empty(), "address '", address, "': must end in a file name");
  return name;
}

namespace {

struct FreeCurl {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeCurl>;

void start_curl() {
  // A local static is initialized once, whichever thread comes first.
  static const auto result = curl_global_init(CURL_GLOBAL_DEFAULT);
  check(result == CURLE_OK, "libcurl does not start: ", curl_easy_strerror(result));
}

// The number that begins `text`; -1 if none does.
int64_t leading_number(std::string_view text) {
  int64_t number = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() ? number : -1;
}

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return copy;
}

// One request, from where the file ends.
class Attempt {
 public:
  Attempt(const std::string& address, PartialFile& file, int64_t bytes,
          const DownloadOptions& options)
      : file_(file), bytes_(bytes), begin_(file.bytes()), options_(options) {
    start_curl();
    handle_.reset(curl_easy_init());
    check(handle_ != nullptr, "libcurl does not start");
    set(CURLOPT_URL, address.c_str());
    set(CURLOPT_ERRORBUFFER, message_.data());
    set_limits();
    set_callbacks();
    if (begin_ > 0) set(CURLOPT_RANGE, (std::to_string(begin_) + "-").c_str());
  }

  void perform() {
    result_ = curl_easy_perform(handle_.get());
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status_);
    if (failure_) std::rethrow_exception(failure_);
  }

  bool is_stopped() const { return is_stopped_; }
  CURLcode result() const { return result_; }
  long status() const { return status_; }

  // What went wrong, in a few words.
  std::string reason() const {
    switch (result_) {
      case CURLE_OK:
        return "the connection ended early";
      case CURLE_COULDNT_RESOLVE_HOST:
        return "could not resolve host";
      case CURLE_COULDNT_CONNECT:
        return "could not connect";
      case CURLE_HTTP_RETURNED_ERROR:
        return "HTTP status " + std::to_string(status_);
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_GOT_NOTHING:
        return "the connection was cut";
      case CURLE_TOO_MANY_REDIRECTS:
        return "too many redirections";
      case CURLE_UNSUPPORTED_PROTOCOL:
        return "redirected to a protocol other than http and https";
      default:
        return message_.front() != '\0' ? message_.data() : curl_easy_strerror(result_);
    }
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    const auto result = curl_easy_setopt(handle_.get(), option, value);
    check(result == CURLE_OK, "libcurl refuses a setting: ", curl_easy_strerror(result));
  }

  void set_limits() {
    set(CURLOPT_NOSIGNAL, 1L);  // signals belong to the program
    set(CURLOPT_USERAGENT, "kelvin");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 5L);
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, std::lround(options_.connect_seconds * 1000));
    set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options_.least_bytes_per_second));
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.slow_seconds));
  }

  void set_callbacks() {
    set(CURLOPT_WRITEFUNCTION, &Attempt::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Attempt::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_XFERINFOFUNCTION, &Attempt::on_progress);
    set(CURLOPT_XFERINFODATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
  }

  // Exceptions must not pass through C: a short count ends the transfer, perform() rethrows.
  static size_t on_body(char* bytes, size_t one, size_t count, void* self) {
    auto& attempt = *static_cast<Attempt*>(self);
    try {
      attempt.take({bytes, one * count});
      return one * count;
    } catch (...) {
      attempt.failure_ = std::current_exception();
      return 0;
    }
  }

  static size_t on_header(char* bytes, size_t one, size_t count, void* self) {
    static_cast<Attempt*>(self)->read_header({bytes, one * count});
    return one * count;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& attempt = *static_cast<Attempt*>(self);
    try {
      if (attempt.options_.progress) attempt.options_.progress(attempt.file_.bytes());
      attempt.is_stopped_ = attempt.options_.should_stop && attempt.options_.should_stop();
    } catch (...) {
      attempt.failure_ = std::current_exception();
    }
    return attempt.is_stopped_ || attempt.failure_ ? 1 : 0;
  }

  void read_header(std::string_view line) {
    const auto text = lower(line);
    if (text.starts_with("http/")) {  // the head of another answer: the last one counts
      first_byte_ = 0;
      offered_ = -1;
    }
    constexpr std::string_view kRange = "content-range: bytes ";
    constexpr std::string_view kLength = "content-length: ";
    if (text.starts_with(kRange)) first_byte_ = leading_number(text.substr(kRange.size()));
    if (text.starts_with(kLength)) offered_ = leading_number(text.substr(kLength.size()));
  }

  void take(std::string_view bytes) {
    if (!has_begun_) begin_body();
    const bool fits = static_cast<int64_t>(bytes.size()) <= bytes_ - file_.bytes();
    if (!fits) file_.clear();
    check(fits, "sends more than the ", bytes_, " bytes it should have");
    file_.append(bytes);
  }

  void begin_body() {
    has_begun_ = true;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status_);
    check(status_ == 200 || status_ == 206, "HTTP status ", status_);
    if (status_ == 200) {
      check(offered_ < 0 || offered_ == bytes_, "offers ", offered_, " bytes, must be ", bytes_);
      file_.clear();
    }
    check(status_ == 200 || first_byte_ == begin_, "was asked for bytes from ", begin_,
          " on, sends those from ", first_byte_);
  }

  Handle handle_;
  PartialFile& file_;
  int64_t bytes_;
  int64_t begin_;
  const DownloadOptions& options_;
  std::array<char, CURL_ERROR_SIZE> message_ = {};
  std::exception_ptr failure_;
  CURLcode result_ = CURLE_OK;
  long status_ = 0;
  int64_t first_byte_ = 0;
  int64_t offered_ = -1;
  bool has_begun_ = false;
  bool is_stopped_ = false;
};

// Whether the next attempt may do better.  Slowness and refusals are not going to change.
bool is_cut(const Attempt& attempt, bool is_first) {
  switch (attempt.result()) {
    case CURLE_OK:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return !is_first;  // it did exist a moment ago
    case CURLE_HTTP_RETURNED_ERROR:
      return attempt.status() == 416;  // what we have is longer than what the server has
    default:
      return false;
  }
}

// False if it was told to stop.
bool pause(const DownloadOptions& options) {
  constexpr double kSlice = 0.02;
  for (double left = options.pause_seconds; left > 0; left -= kSlice) {
    if (options.should_stop && options.should_stop()) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }
  return true;
}

DownloadEnd fill(PartialFile& file, const std::string& address, int64_t bytes,
                 const DownloadOptions& options) {
  int idle_attempts = 0;
  for (bool is_first = true; file.bytes() < bytes; is_first = false) {
    if (!is_first && !pause(options)) return DownloadEnd::stopped;
    const auto before = file.bytes();
    Attempt attempt(address, file, bytes, options);
    attempt.perform();
    if (attempt.is_stopped()) return DownloadEnd::stopped;
    if (file.bytes() == bytes) break;
    const bool is_idle = file.bytes() - before < options.least_progress_bytes;
    idle_attempts = is_idle ? idle_attempts + 1 : 0;
    check(is_cut(attempt, is_first) && idle_attempts <= options.attempts_without_progress,
          attempt.reason());
    if (attempt.status() == 416) file.clear();
  }
  return DownloadEnd::complete;
}

}  // namespace

DownloadEnd download(const std::string& address, const std::filesystem::path& target, int64_t bytes,
                     const DownloadOptions& options) {
  PartialFile file(target);
  if (file.bytes() > bytes) file.clear();
  try {
    check(bytes > 0, "must have at least one byte, expected are ", bytes);
    const auto end = fill(file, address, bytes, options);
    if (end == DownloadEnd::complete) file.sync();
    if (options.progress) options.progress(file.bytes());
    return end;
  } catch (const DiskError&) {
    throw;
  } catch (const Error& error) {
    throw Error(address + ": " + error.what());
  }
}

}  // namespace kelvin
