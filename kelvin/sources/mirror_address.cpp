#include "kelvin/sources/mirror_address.h"

#include <algorithm>
#include <string_view>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

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

}  // namespace kelvin
