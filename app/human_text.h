#pragma once

#include <string>
#include <string_view>

namespace kelvin {

// Text for people, on stderr, line by line as shown_line makes it: what it quotes from files and
// names of folders does not steer the terminal and does not fill it.  That nobody can read it (a
// closed terminal, a full disk) must not end the work it is about: failures are ignored.
void print_for_people(std::string_view text);

// The same for what is meant to steer the terminal, byte by byte.
void steer_terminal(std::string_view bytes);

// The same for what did not stop the work, as one line.
void warn_people(const std::string& text);

}  // namespace kelvin
