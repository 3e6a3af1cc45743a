#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kelvin/formats/pickle_value.h"

namespace kelvin {

// The functions and classes that a pickle of some kind may name.  Here a name is an inert mark, and
// a "call" of it makes a value by code of ours.  Of anything else nothing is built, because to
// build it would be to run it: the pickle is refused, or the value is an `object` that holds
// nothing. `where` is file and offset.
class PickleNames {
 public:
  PickleNames() = default;
  PickleNames(const PickleNames&) = delete;
  PickleNames& operator=(const PickleNames&) = delete;
  virtual ~PickleNames() = default;

  // A mark for `module.name`; an Error that shows the name, or an object, if it is not known.
  virtual PickleValue known(Pickle& pickle, std::string_view module, std::string_view name,
                            const std::string& where) const = 0;

  // What the opcode REDUCE makes of a mark and a tuple of arguments.
  virtual PickleValue reduced(Pickle& pickle, const PickleValue& name, const PickleValue& arguments,
                              const std::string& where) const = 0;

  // What the opcode BUILD does to a value that was made, given its state.
  virtual void build(Pickle& pickle, size_t object, const PickleValue& state,
                     const std::string& where) const = 0;

  // What a persistent id, something beside the pickle, stands for; nothing where there are none.
  virtual std::optional<PickleValue> persistent(const Pickle& /*pickle*/, const PickleValue& /*id*/,
                                                const std::string& /*where*/) const {
    return std::nullopt;
  }
};

// "module.name", of which a stranger may have written megabytes, short enough to be looked up.
inline std::string pickle_name(std::string_view module, std::string_view name) {
  constexpr size_t kMostName = 1000;
  return std::string(module.substr(0, kMostName)) + "." + std::string(name.substr(0, kMostName));
}

}  // namespace kelvin
