#include "app/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "app/cli/human_text.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/text_table.h"

namespace kelvin {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kFewestColumns = 40;  // no table is legible in fewer

// 0 if nobody set it to a number.
size_t columns_of_environment() {
  const char* value = std::getenv("COLUMNS");
  if (value == nullptr) return 0;
  const std::string_view text = value;
  size_t columns = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return failure == std::errc() && end == text.data() + text.size() ? columns : 0;
}

// 0 if stdout is no terminal.
size_t columns_of_terminal() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

size_t stdout_columns() {
  auto columns = columns_of_environment();
  if (columns == 0) columns = columns_of_terminal();
  if (columns == 0) columns = kUsualColumns;
  return std::max(columns, kFewestColumns);
}

void print_table(const Table& table, TableFormat format) {
  fmt::print("{}", render(table, format, stdout_columns()));
}

void print_paragraph(const std::string& text) {
  fmt::print("{}\n", join(wrapped_lines(text, stdout_columns()), "\n"));
}

void print_remark(const std::string& text) {
  print_for_people(join(wrapped_lines(text, stdout_columns()), "\n") + "\n");
}

}  // namespace kelvin
