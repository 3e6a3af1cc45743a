#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kelvin {

// A scalar or an array of scalars, as a config file holds it.
using Value = nlohmann::json;
using Values = std::map<std::string, Value>;

// One section of a config.  Remembers which keys were read and what they ended
// up as, so that a misspelt key is an error and not a silently kept default,
// and so that the config can be stored with nothing unset any more.
class Settings {
 public:
  // `section` is what stands before the dot in messages; empty for the top level.
  Settings(std::string section, Values values);

  // Overwrites `field` if the config sets `key`; a default stands only in the field itself.
  void read(const std::string& key, bool& field);
  void read(const std::string& key, int64_t& field);
  void read(const std::string& key, double& field);
  void read(const std::string& key, std::string& field);
  void read(const std::string& key, std::vector<double>& field);
  void read(const std::string& key, std::vector<std::string>& field);

  // Lets `read` read its keys with `prefix` before them: what a setting chooses by name, such as
  // model.attention, has its own settings beside it, such as model.attention_k.
  void read_prefixed(const std::string& prefix, const std::function<void(Settings&)>& read);

  // Throws an Error naming the unread key and the nearest one that was read.
  void reject_unknown_keys() const;

  // Every key that was read, with the value it ended up with.
  const Values& resolved() const { return resolved_; }

  // "section.key", or "section.prefixkey", as the user would write it.
  std::string full_name(const std::string& key) const;

 private:
  template <class Field>
  void read_as(const std::string& key, const char* expected, Field& field);

  std::string section_;
  std::string prefix_;  // of all keys, while read_prefixed() reads
  Values values_;
  Values resolved_;
};

}  // namespace kelvin
