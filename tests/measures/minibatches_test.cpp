#include "kelvin/measures/minibatches.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "tests/support/tensors.h"

namespace kelvin {
namespace {

struct Seen {
  std::vector<std::vector<Minibatch>> layers = std::vector<std::vector<Minibatch>>(2);

  Minibatches::Consume consume() {
    return [this](size_t layer, const Minibatch& batch) { layers[layer].push_back(batch); };
  }
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    for (const auto& batch : layers[0]) sizes.push_back(batch.labels.size(0));
    return sizes;
  }
};

// A stream of batches of these sizes; features, labels and what is held out are counted through.
Seen cut(Minibatches minibatches, const std::vector<int64_t>& sizes, bool is_held_out = true) {
  Seen seen;
  int64_t begin = 0;
  for (const auto size : sizes) {
    const auto labels = torch::arange(begin, begin + size);
    const auto rows = labels.to(torch::kFloat32).unsqueeze(1);
    minibatches.add({rows, 10 * rows}, labels, is_held_out ? labels % 3 == 0 : torch::Tensor(),
                    seen.consume());
    begin += size;
  }
  minibatches.finish(seen.consume());
  minibatches.finish(seen.consume());  // nothing is left
  return seen;
}

void expect_counted_through(const Seen& seen) {
  int64_t next = 0;
  for (size_t i = 0; i < seen.layers[0].size(); ++i) {
    const auto size = seen.layers[0][i].labels.size(0);
    const auto expected = torch::arange(next, next + size);
    for (const size_t layer : {0U, 1U}) {
      const auto& batch = seen.layers[layer][i];
      expect_close(batch.labels, expected, 0);
      expect_close(batch.features, (layer == 0 ? 1 : 10) * expected.unsqueeze(1), 0);
      EXPECT_TRUE(torch::equal(batch.held_out, expected % 3 == 0));
    }
    next += size;
  }
}

TEST(Minibatches, AreOfOneSizeExceptTheLast) {
  const auto seen = cut(Minibatches(4), {3, 3, 9, 2});
  EXPECT_EQ(seen.sizes(), (std::vector<int64_t>{4, 4, 4, 4, 1}));
  expect_counted_through(seen);
}

TEST(Minibatches, OfNothingAreNone) { EXPECT_TRUE(cut(Minibatches(4), {}).sizes().empty()); }

TEST(Minibatches, NeedNothingHeldOut) {
  const auto seen = cut(Minibatches(2), {3}, /*is_held_out=*/false);
  EXPECT_FALSE(seen.layers[1][0].held_out.defined());
}

}  // namespace
}  // namespace kelvin
