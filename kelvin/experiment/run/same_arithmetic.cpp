#include "kelvin/experiment/run/same_arithmetic.h"

#include <array>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

struct Fact {
  const char* path;  // in the metadata
  const char* meaning;
};
constexpr std::array kFacts = {Fact{"/versions/threads", "threads"},
                               Fact{"/versions/cpu_capability", "instruction set"},
                               Fact{"/machine/cpu_features", "processor features"},
                               Fact{"/versions/blas", "BLAS"},
                               Fact{"/versions/blas_library", "BLAS library"},
                               Fact{"/versions/blas_kernels", "kernels of the BLAS"},
                               Fact{"/versions/torch", "LibTorch"}};

Json value_of(const Json& metadata, const Fact& fact) {
  const Json::json_pointer pointer(fact.path);
  return metadata.contains(pointer) ? metadata.at(pointer) : Json();
}

}  // namespace

void check_same_arithmetic(const std::string& run, const Json& then, const Json& now) {
  std::vector<std::string> differences;
  for (const auto& fact : kFacts) {
    const auto old_value = value_of(then, fact);
    const auto new_value = value_of(now, fact);
    if (old_value == new_value) continue;
    differences.push_back(std::string(fact.meaning) + " " + new_value.dump() + " instead of " +
                          old_value.dump());
  }
  check(differences.empty(), run, ": would not go on to the same bits: ", join(differences, ", "),
        "; --inexact does it nevertheless");
}

}  // namespace kelvin
