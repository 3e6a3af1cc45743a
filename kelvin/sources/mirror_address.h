#pragma once

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

}  // namespace kelvin
