#include "app/cli/human_text.h"

#include <cstdio>
#include <string>

#include "kelvin/core/text.h"

namespace kelvin {

void print_for_people(std::string_view text) {
  const bool ends_its_line = text.ends_with('\n');
  if (ends_its_line) text.remove_suffix(1);
  auto lines = split(text, '\n');
  for (auto& line : lines) line = shown_line(line);
  steer_terminal(join(lines, "\n") + (ends_its_line ? "\n" : ""));
}

void steer_terminal(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

void warn_people(const std::string& text) {
  print_for_people("warning: " + shown_line(text) + "\n");
}

}  // namespace kelvin
