#include "app/cli/value_type.h"

#include <map>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr std::string_view kOf = " of ";

// Paths by what the help calls them.
const std::map<std::string, Paths>& named_paths() {
  static const std::map<std::string, Paths> names = {
      {"DIR", Paths::folders},  {"FOLDER", Paths::folders}, {"RUN", Paths::folders},
      {"FILE", Paths::files},   {"PATH", Paths::files},     {"WEIGHTS", Paths::files},
      {"x.npz", Paths::files},  {"test.npz", Paths::files}, {"NETWORKS", Paths::files},
      {"RECIPE", Paths::files}, {"MODEL", Paths::files},
  };
  return names;
}

// Of "RUN, x.npz or WEIGHTS" the widest.
Paths paths_of(const std::string& shown) {
  auto paths = Paths::none;
  for (const auto& word : split(shown, ' ')) {
    const auto found = named_paths().find(word.substr(0, word.find(',')));
    if (found != named_paths().end()) paths = std::max(paths, found->second);
  }
  return paths;
}

}  // namespace

ValueType value_type(const CLI::Option& option) {
  auto name = option.get_type_name();
  ValueType type;
  if (const auto of = name.find(kOf); of != std::string::npos) {
    type.choices = split(name.substr(of + kOf.size()), '|');
    name.resize(of);
  }
  type.shown = name;
  type.is_list = name == "A,B";
  type.paths = paths_of(name.empty() ? option.get_name(/*positional=*/true) : name);
  return type;
}

std::string listed_kind(const std::string& choice) {
  const bool is_kind = choice.starts_with('<') && choice.ends_with('>');
  return is_kind ? choice.substr(1, choice.size() - 2) : "";
}

bool takes_several(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

}  // namespace kelvin
