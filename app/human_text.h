#pragma once

#include <string_view>

namespace kelvin {

// Text for people, on stderr.  That nobody can read it (a closed terminal, a full
// disk) must not end the work it is about: failures are ignored.
void print_for_people(std::string_view text);

}  // namespace kelvin
