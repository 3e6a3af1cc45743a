#include "kelvin/retrieval/network.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "kelvin/ops/simplex_map.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::network_test {

ScoreMap map_named(const std::string& name) {
  Settings settings(name, {});
  return [map = simplex_maps().find(name).make(settings)](const torch::Tensor& scores) {
    return map(scores, /*temperature=*/1);
  };
}

torch::Tensor parameter(const RetrievalNetwork& network, const std::string& name) {
  for (const auto& [each, tensor] : network.parameters()) {
    if (each == name) return tensor.detach();
  }
  ADD_FAILURE() << name;
  return {};
}

// The network layer by layer, keys and values of every item, in LibTorch's operators.
torch::Tensor plain_logits(const RetrievalNetwork& network, const RetrievalSets& sets,
                           const ScoreMap& map) {
  const auto two_layers = [&](const std::string& name, const torch::Tensor& x) {
    const auto layer = [&](const torch::Tensor& input, const std::string& index) {
      return torch::linear(input, parameter(network, name + index + ".weight"),
                           parameter(network, name + index + ".bias"));
    };
    return layer(torch::gelu(layer(x, ".0")), ".2");
  };
  const auto items =
      torch::cat({sets.priorities.unsqueeze(2),
                  torch::one_hot(sets.classes, network.shape().classes).to(torch::kFloat32)},
                 2);
  const auto x = two_layers("psi_x", items);
  const auto y = two_layers("psi_q", sets.queries.unsqueeze(1));
  const auto query = y.matmul(parameter(network, "query.weight").t());
  const auto keys = x.matmul(parameter(network, "key.weight").t());
  const auto values = x.matmul(parameter(network, "value.weight").t());
  auto scores = torch::bmm(keys, query.unsqueeze(2)).squeeze(2) /
                std::sqrt(static_cast<double>(network.shape().width));
  const auto is_masked = sets.is_masked();
  if (is_masked.defined()) {
    scores = scores.masked_fill(is_masked, -std::numeric_limits<double>::infinity());
  }
  return two_layers("phi", torch::bmm(map(scores).unsqueeze(1), values).squeeze(1));
}

class RetrievalNetworkWith : public testing::TestWithParam<std::string> {};

// Also of maps whose weights do not sum to 1, and which a constant in all scores changes.
TEST_P(RetrievalNetworkWith, IsTheNetworkLayerByLayer) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 24, .classes = 4}, 3);
  const auto map = map_named(GetParam());
  for (const auto& wanted : {DrawnSets{.count = 9, .least = 2, .most = 8, .classes = 4},
                             DrawnSets{.count = 3, .least = 40, .most = 40, .classes = 4}}) {
    const auto sets = draw_sets(wanted, 1);
    expect_close(network.answer(sets, map).logits, plain_logits(network, sets, map), 2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Maps, RetrievalNetworkWith,
                         testing::Values("softmax", "adaptive", "sigmoid", "stick_breaking",
                                         "softmax_off_by_one", "sparsemax", "top_k"),
                         [](const auto& info) { return info.param; });

TEST(RetrievalNetwork, OfMaskedSetsIsThatOfTheSetsWithoutTheMaskedItems) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 16}, 0);
  const auto map = map_named("softmax");
  const auto sets = draw_sets({.count = 6, .least = 2, .most = 9}, 4);
  const auto logits = network.answer(sets, map).logits;
  for (int64_t i = 0; i < 6; ++i) {
    const auto size = sets.sizes[i].item<int64_t>();
    const RetrievalSets alone{.priorities = sets.priorities[i].narrow(0, 0, size).unsqueeze(0),
                              .classes = sets.classes[i].narrow(0, 0, size).unsqueeze(0),
                              .queries = sets.queries[i].unsqueeze(0),
                              .sizes = sets.sizes[i].unsqueeze(0),
                              .labels = sets.labels[i].unsqueeze(0)};
    expect_close(network.answer(alone, map).logits, logits[i].unsqueeze(0), 1e-6);
  }
}

TEST(RetrievalNetwork, IgnoresTheOrderOfItems) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 16}, 0);
  auto sets = draw_sets({.count = 5, .least = 12, .most = 12}, 4);
  const auto before = network.answer(sets, map_named("softmax")).logits;
  sets.priorities = sets.priorities.flip(1);
  sets.classes = sets.classes.flip(1);
  expect_close(network.answer(sets, map_named("softmax")).logits, before, 1e-6);
}

TEST(RetrievalNetwork, SpreadsItsScoresWithinTheSpectralBound) {
  const torch::NoGradGuard no_grad;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const RetrievalNetwork network({.width = 16}, seed);
    const auto sets = draw_sets({.count = 20, .least = 30, .most = 30}, seed);
    const auto hidden = network.hidden(sets);
    const auto scores = network.scores(hidden, sets);
    const auto spreads = (scores.amax(1) - scores.amin(1)).to(torch::kFloat64);
    EXPECT_TRUE((spreads <= network.score_spread_bounds(hidden, sets)).all().item<bool>());
  }
}

NamedTensors tensors_of(const RetrievalNetwork& network) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : network.parameters()) tensors[name] = tensor.detach();
  return tensors;
}

TEST(RetrievalNetwork, IsWhatItsParametersSay) {
  const torch::NoGradGuard no_grad;
  const RetrievalNetwork network({.width = 12, .classes = 3}, 7);
  const auto again = RetrievalNetwork::from(tensors_of(network), "x");
  const auto sets = draw_sets({.count = 4, .classes = 3}, 0);
  EXPECT_TRUE(torch::equal(again.answer(sets, map_named("softmax")).logits,
                           network.answer(sets, map_named("softmax")).logits));
}

TEST(RetrievalNetwork, RejectsParametersOfAnother) {
  const auto tensors = tensors_of(RetrievalNetwork({.width = 12, .classes = 3}, 7));
  const auto error_with = [&](const auto& change) {
    auto changed = tensors;
    change(changed);
    return error_of([&] { RetrievalNetwork::from(changed, "x"); });
  };
  EXPECT_EQ(error_with([](auto& all) { all.erase("phi.2.weight"); }),
            "x: is no network for max retrieval (it has no psi_x.0.weight or no phi.2.weight)");
  EXPECT_EQ(error_with([](auto& all) { all["phi.2.weight"] = torch::zeros({3}); }),
            "x: psi_x.0.weight and phi.2.weight must be matrices");
  EXPECT_EQ(error_with([](auto& all) { all.erase("key.weight"); }), "x: has no key.weight");
  EXPECT_EQ(error_with([](auto& all) {
              all["key.weight"] = torch::zeros({2, 2});
            }),
            "x: key.weight must be numbers of shape [12, 12], is [2, 2]");
  EXPECT_EQ(error_with([](auto& all) {
              all["key.weight"] = torch::full({12, 12}, NAN);
            }),
            "x: key.weight must be finite");
  EXPECT_EQ(error_with([](auto& all) { all["more"] = torch::zeros({1}); }),
            "x: has 16 tensors instead of 15");
  EXPECT_EQ(error_of([] { RetrievalNetwork({.width = 0}, 0); }),
            "retrieval network: width must be from 1 to 4096, got 0");
  EXPECT_EQ(error_of([] { RetrievalNetwork({.classes = 1}, 0); }),
            "retrieval network: classes must be from 2 to 1000, got 1");
}

}  // namespace kelvin::network_test
