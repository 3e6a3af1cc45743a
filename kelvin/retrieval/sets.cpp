#include "kelvin/retrieval/sets.h"

#include <ATen/CPUGeneratorImpl.h>

#include "kelvin/core/check.h"

namespace kelvin {

torch::Tensor RetrievalSets::is_masked() const {
  const auto n = priorities.size(1);
  if ((sizes == n).all().item<bool>()) return {};
  return torch::arange(n).unsqueeze(0) >= sizes.unsqueeze(1);
}

RetrievalSets draw_sets(const DrawnSets& wanted, uint64_t seed) {
  check(wanted.count >= 1, "draw_sets: needs at least one set, got ", wanted.count);
  check(wanted.least >= 1 && wanted.least <= wanted.most,
        "draw_sets: sizes must go up from at least 1, got ", wanted.least, " to ", wanted.most);
  check(wanted.classes >= 2, "draw_sets: needs at least two classes, got ", wanted.classes);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto n = wanted.most;
  RetrievalSets sets;
  sets.priorities = torch::rand({wanted.count, n}, generator, torch::kFloat32);
  sets.classes = torch::randint(wanted.classes, {wanted.count, n}, generator, torch::kInt64);
  sets.queries = torch::rand({wanted.count}, generator, torch::kFloat32);
  sets.sizes =
      torch::randint(wanted.least, wanted.most + 1, {wanted.count}, generator, torch::kInt64);
  const auto is_masked = sets.is_masked();
  if (is_masked.defined()) sets.priorities.masked_fill_(is_masked, 0);
  // A priority of 0 is as low as what is masked: the first place, never masked, wins then.
  const auto winners = sets.priorities.argmax(1, /*keepdim=*/true);
  sets.labels = sets.classes.gather(1, winners).squeeze(1);
  return sets;
}

}  // namespace kelvin
