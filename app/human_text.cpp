#include "app/human_text.h"

#include <cstdio>

namespace kelvin {

void print_for_people(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void warn_people(const std::string& text) { print_for_people("warning: " + text + "\n"); }

}  // namespace kelvin
