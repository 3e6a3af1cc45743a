#pragma once

#include <sstream>
#include <stdexcept>

namespace kelvin {

// The only exception kelvin throws: something the user can fix.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Error with all parts joined, unless `ok`.
template <class... Parts>
void check(bool ok, const Parts&... parts) {
  if (ok) return;
  std::ostringstream message;
  (message << ... << parts);
  throw Error(message.str());
}

}  // namespace kelvin
