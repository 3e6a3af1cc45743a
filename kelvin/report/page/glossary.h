#pragma once

#include <string>
#include <vector>

namespace kelvin {

// What a reading's name means, for people.
struct Term {
  std::string name;          // as in readings.jsonl
  std::string label;         // short, for tables: "solution rank (SR)"
  std::string meaning;       // one sentence
  bool is_fraction = false;  // shown as percent
};

// For a name it does not know: the name itself as the label and no meaning.
Term term(const std::string& name);

// Every name it knows, in the order of a report.
const std::vector<Term>& glossary();

}  // namespace kelvin
