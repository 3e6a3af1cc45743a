#pragma once

#include <string>
#include <string_view>

namespace kelvin {

// Text for people, on stderr.  That nobody can read it (a closed terminal, a full
// disk) must not end the work it is about: failures are ignored.
void print_for_people(std::string_view text);

// The same for what did not stop the work, as one line.
void warn_people(const std::string& text);

}  // namespace kelvin
