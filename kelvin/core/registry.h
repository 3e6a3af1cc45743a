#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {

// Everything of one kind (datasets, models, measures) that recipes can name.
template <class Entry>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  // Returns true so that a namespace-scope constant can call it.
  bool add(const std::string& name, Entry entry) {
    check(entries_.emplace(name, std::move(entry)).second, kind_, " '", name,
          "' is registered twice");
    return true;
  }

  const Entry& find(const std::string& name) const {
    auto found = entries_.find(name);
    if (found == entries_.end()) {
      const auto guess = nearest_name(name, names());
      check(false, "no ", kind_, " named '", name, "'",
            guess.empty() ? "." : "; did you mean '" + guess + "'?",
            " There are: ", join(names(), ", "));
    }
    return found->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& [name, entry] : entries_) list.push_back(name);
    return list;
  }

  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace kelvin
