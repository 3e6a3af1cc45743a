#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kelvin/core/settings.h"

namespace kelvin {

// The settings of one run by their full names ("train.temperature"), as text files hold them.
class Config {
 public:
  Config() = default;
  explicit Config(Values values) : values_(std::move(values)) {}

  // `origin` (a path) stands before line numbers in messages.
  static Config parse(std::string_view toml, const std::string& origin);
  static Config load(const std::filesystem::path& path);

  // "train.lr=0.3": the right side is a TOML value; a bare word is taken as a text.
  void apply_override(const std::string& assignment);

  void set(const std::string& key, Value value) { values_[key] = std::move(value); }
  // Later settings win.
  void merge(const Config& other);

  // The keys of one section without its name: "measure.probe.l2" is the key "l2" of
  // "measure.probe"; the section "" holds those without a dot.
  Settings section(const std::string& name) const;
  // Throws for a key whose section is none of `known`, naming the nearest.
  void reject_unknown_sections(const std::vector<std::string>& known) const;

  bool has(const std::string& key) const { return values_.contains(key); }
  const Value& at(const std::string& key) const;
  const Values& values() const { return values_; }

  std::string to_toml() const;

 private:
  Values values_;
};

}  // namespace kelvin
