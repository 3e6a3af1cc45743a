#include "app/cli/common_flags.h"

#include <charconv>

#include "app/cli/machine.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

template <class Number>
Number parse(const std::string& flag, const std::string& text, const char* expected) {
  const bool has_plus = text.starts_with("+") && !text.starts_with("+-");
  const char* begin = text.data() + (has_plus ? 1 : 0);
  const char* end = text.data() + text.size();
  Number number = 0;
  const auto [stop, failure] = std::from_chars(begin, end, number);
  check(begin != end && failure == std::errc() && stop == end, flag, ": must be ", expected,
        ", got '", text, "'");
  return number;
}

}  // namespace

int64_t whole_number_of(const std::string& flag, const std::string& text) {
  return parse<int64_t>(flag, text, "a whole number");
}

double number_of(const std::string& flag, const std::string& text) {
  return parse<double>(flag, text, "a number");
}

std::vector<std::string> names_of(const std::string& flag, const std::string& text) {
  auto names = split(text, ',');
  for (const auto& name : names) {
    check(!name.empty(), flag, ": must be names with commas between them, got '", text, "'");
  }
  return names;
}

int64_t ThreadsFlag::threads() const {
  if (text_.empty()) return default_threads();
  const auto threads = whole_number_of("--threads", text_);
  check(threads >= 1 && threads <= kMostThreads, "--threads: must be from 1 to ", kMostThreads,
        ", got ", threads);
  return threads;
}

void CommonFlags::declare(CLI::App& command, const std::string& threads_help) {
  command.add_flag("-q,--quiet", is_quiet_, "no progress and no remarks on stderr");
  format_.declare(command);
  data_folder_.declare(command);
  threads_.declare(command, threads_help);
}

void CommonFlags::check() const {
  format_.format();
  threads_.threads();
}

}  // namespace kelvin
