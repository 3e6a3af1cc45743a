#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kelvin {

// Where published weights come from whose parameters have other names than ours, and what becomes
// of those: each pattern (ECMAScript) that matches is replaced, one after the other.
struct WeightSource {
  struct Renaming {
    std::string pattern;
    std::string replacement;
  };

  std::string name;    // of the repository or library
  std::string models;  // of ours that its weights fit
  std::vector<Renaming> renamings;
};

const std::vector<WeightSource>& weight_sources();

// Our name for each stored one, which is what containers, wrappers and the first source under
// which the names are `wanted` make of it.  Names that stay unlike any of ours are kept, so that
// who loads them can say which; tensors beside the container of the weights (an optimizer's, say)
// are left out.  `may_lack` are wanted names that a file need not have.  `part` is the container,
// if it is not to be one of the usual ones: "state_dict_ema".
std::map<std::string, std::string> our_names(const std::set<std::string>& stored,
                                             const std::set<std::string>& wanted,
                                             const std::set<std::string>& may_lack,
                                             const std::string& part = "");

// The containers in which most of the wanted names are: a checkpoint may hold, beside the weights,
// an average of them.
std::vector<std::string> weight_parts(const std::set<std::string>& stored,
                                      const std::set<std::string>& wanted);

}  // namespace kelvin
