#pragma once

#include <string>
#include <vector>

#include "app/cli/value_type.h"

namespace kelvin {

// What a word on the command line may become.
struct Candidate {
  std::string word;
  std::string meaning;
};

struct Candidates {
  std::vector<Candidate> words;
  Paths paths = Paths::none;  // which the shell offers besides
};

// For the last of the words that stand behind the name of the tool; it may be empty.
Candidates candidates(const std::vector<std::string>& words);

}  // namespace kelvin
