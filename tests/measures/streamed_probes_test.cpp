#include "kelvin/measures/streamed_probes.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::streamed_probes_test {

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

ProbeOptions reproduce() {
  return {.protocol = ProbeProtocol::reproduce, .passes = 3, .batch = 32};
}

ProbeOptions published() {
  return {.protocol = ProbeProtocol::published, .passes = 5, .batch = 32, .learning_rate = 0.01};
}

// Two layers, the first of which says nothing, the second something about the class.
Record all_samples(int64_t samples, uint64_t seed) {
  Record record;
  record.classes = 3;
  record.labels = torch::arange(samples) % 3;
  record.indices = torch::arange(samples);
  LayerRecord blind;
  blind.name = "blind";
  blind.output = torch::ones({samples, 2, 2, 2});
  LayerRecord telling;
  telling.name = "telling";
  telling.output =
      (torch::one_hot(record.labels, 8) + 0.6 * noise({samples, 8}, seed)).to(torch::kFloat32);
  record.layers = {blind, telling};
  return record;
}

Record chosen(const Record& record, const torch::Tensor& which) {
  auto part = record;
  part.labels = record.labels.index_select(0, which);
  part.indices = record.indices.index_select(0, which);
  for (auto& layer : part.layers) layer.output = layer.output.index_select(0, which);
  return part;
}

// Passes over `train` in another order each, until no more are wanted; then all of `test`.
int64_t show(StreamedProbes& probes, const Record& train, const Record& test, int64_t batch = 20) {
  int64_t passes = 0;
  do {
    const auto order = noise({train.labels.size(0)}, static_cast<uint64_t>(passes)).argsort();
    for (const auto& part : order.split(batch)) probes.see_train(chosen(train, part));
    ++passes;
  } while (probes.wants_train_again());
  probes.see_test(test);
  return passes;
}

double accuracy(const ProbeResult& result) {
  return result.hits.to(torch::kFloat64).mean().item<double>();
}

TEST(StreamedProbes, LearnWhatTheFeaturesTell) {
  for (const auto& options : {reproduce(), published()}) {
    StreamedProbes probes(options);
    EXPECT_EQ(show(probes, all_samples(900, 1), all_samples(300, 2)), options.passes);
    EXPECT_TRUE(probes.saw_both_splits());
    const auto results = probes.results();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].layer, "blind");
    EXPECT_NEAR(accuracy(results[0]), 1. / 3, 1e-9);
    EXPECT_GT(accuracy(results[1]), 0.65);
    EXPECT_LT(accuracy(results[1]), 0.99);
  }
}

TEST(StreamedProbes, SayHowTheyWereTrained) {
  StreamedProbes ours(reproduce());
  show(ours, all_samples(900, 1), all_samples(300, 2));
  auto definition = ours.results()[1].definition;
  EXPECT_EQ(definition["protocol"], "reproduce");
  EXPECT_EQ(definition["passes"], 3);
  EXPECT_EQ(definition["batch"], 32);
  EXPECT_EQ(definition["train_samples"], 900);
  EXPECT_EQ(definition["samples"], 300);
  EXPECT_EQ(definition["width"], 8);
  EXPECT_NEAR(definition["held_out"].get<double>(), 90, 30);
  EXPECT_TRUE(definition.contains("l2"));
  EXPECT_EQ(definition["momentum"], 0.5);
  EXPECT_EQ(definition["statistics_samples"], 512);
  EXPECT_EQ(definition["most_directions"], 64);
  EXPECT_EQ(definition["least_deviation"], 0.1);
  EXPECT_EQ(definition["rounding"], 1e-6);
  StreamedProbes theirs(published());
  show(theirs, all_samples(900, 1), all_samples(300, 2));
  definition = theirs.results()[1].definition;
  EXPECT_EQ(definition["protocol"], "published");
  EXPECT_EQ(definition["batch"], 32);
  EXPECT_EQ(definition["steps"], 5 * 29);  // 900 samples in minibatches of 32, the last of 4
  EXPECT_FALSE(definition.contains("l2"));
  EXPECT_FALSE(definition.contains("held_out"));
  EXPECT_FALSE(definition.contains("statistics_samples"));
}

TEST(StreamedProbes, SayIfNothingWasHeldOut) {
  // Which samples are held out depends on their numbers alone: three of them may have none.
  auto options = reproduce();
  Definition definition;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    StreamedProbes probes(options);
    show(probes, all_samples(3, 1), all_samples(90, 2));
    definition = probes.results()[1].definition;
    ASSERT_TRUE(definition.contains("held_out"));
    if (definition["held_out"] == 0) break;
  }
  EXPECT_EQ(definition["held_out"], 0);
  EXPECT_EQ(definition["statistics_samples"], 3);
  EXPECT_EQ(definition["l2"], 0.1);  // the first candidate, as none is better
  options.l2 = {1e-3};
  StreamedProbes probes(options);
  show(probes, all_samples(90, 1), all_samples(90, 2));
  EXPECT_FALSE(probes.results()[1].definition.contains("held_out"));
}

TEST(StreamedProbes, DoNotDependOnTheBatchesOfTheStream) {
  for (const auto& options : {reproduce(), published()}) {
    StreamedProbes fine(options);
    StreamedProbes coarse(options);
    show(fine, all_samples(900, 1), all_samples(90, 2), 7);
    show(coarse, all_samples(900, 1), all_samples(90, 2), 450);
    expect_close(fine.state().at("weight/telling"), coarse.state().at("weight/telling"), 1e-5);
    EXPECT_EQ(fine.results()[1].definition, coarse.results()[1].definition);
  }
}

TEST(StreamedProbes, AreTheSameTwiceOnSeveralCores) {
  // Wide enough for products to be cut up.
  const auto with_wide_layers = [](Record record) {
    for (const int64_t width : {500, 300, 600}) {
      LayerRecord layer;
      layer.name = "wide" + std::to_string(width);
      layer.output = noise({record.labels.size(0), width}, static_cast<uint64_t>(width));
      layer.output = layer.output.to(torch::kFloat32);
      layer.output.select(1, 5) += record.labels;
      record.layers.push_back(layer);
    }
    return record;
  };
  const auto train = with_wide_layers(all_samples(560, 1));
  const auto test = with_wide_layers(all_samples(90, 2));
  const auto threads = at::get_num_threads();
  at::set_num_threads(4);
  for (const auto& options : {reproduce(), published()}) {
    StreamedProbes first(options);
    StreamedProbes second(options);
    show(first, train, test);
    show(second, train, test);
    const auto expected = first.state();
    const auto found = second.state();
    EXPECT_EQ(expected.size(), 3U * 5);
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(found.at(name).equal(tensor)) << name;
    EXPECT_EQ(first.results()[4].definition, second.results()[4].definition);
  }
  at::set_num_threads(threads);
}

TEST(StreamedProbes, TakeAClassWithoutSamples) {
  for (const auto& options : {reproduce(), published()}) {
    auto train = all_samples(900, 1);
    auto test = all_samples(300, 2);
    train.classes = 5;
    test.classes = 5;
    StreamedProbes probes(options);
    show(probes, train, test);
    EXPECT_EQ(probes.results()[1].weight.size(0), 5);
    EXPECT_GT(accuracy(probes.results()[1]), 0.65);
  }
}

TEST(StreamedProbes, TakeASingleClassOfSeveral) {
  auto longer = published();
  longer.passes *= 3;  // Adam has to come away from weights drawn at random
  for (const auto& options : {reproduce(), longer}) {
    auto train = all_samples(900, 1);
    auto test = all_samples(300, 2);
    train.labels.fill_(1);
    test.labels.fill_(1);
    StreamedProbes probes(options);
    show(probes, train, test);
    for (const auto& result : probes.results()) {
      EXPECT_EQ(accuracy(result), 1) << result.layer << " " << result.definition["protocol"];
    }
  }
}

TEST(StreamedProbes, NameTheCommonestClassOfAConstantLayer) {
  for (const auto& options : {reproduce(), published()}) {
    auto train = all_samples(1000, 1);
    train.classes = 2;
    train.labels = (torch::arange(1000) % 5 < 2).to(torch::kInt64);  // 600 and 400
    train.layers.resize(1);
    train.layers[0].output = torch::full({1000, 6}, 0.1F);  // whose mean rounds
    StreamedProbes probes(options);
    show(probes, train, train);
    EXPECT_TRUE(probes.results()[0].hits.equal(train.labels == 0));
  }
}

TEST(StreamedProbes, HoldOutTheSameSamplesInAnyOrder) {
  // Of 180 samples that bear one of two numbers, those of a number are held out together.
  const auto held_out = [](int64_t number, int64_t other, uint64_t order_seed) {
    auto train = all_samples(180, 1);
    train.indices = torch::where(torch::arange(180) < 90, number, other);
    StreamedProbes probes(reproduce());
    const auto order = noise({180}, order_seed).argsort();
    show(probes, chosen(train, order), all_samples(90, 2));
    return probes.results()[0].definition.value("held_out", int64_t{0});
  };
  int64_t mixed = 0;
  for (int64_t number = 0; number < 40; number += 2) {
    const auto count = held_out(number, number + 1, 1);
    EXPECT_EQ(count % 90, 0) << number;
    EXPECT_EQ(held_out(number, number + 1, 2), count) << number;
    mixed += count == 90 ? 1 : 0;
  }
  EXPECT_GT(mixed, 0);
  EXPECT_LT(mixed, 20);
}

TEST(StreamedProbes, AreReadBeforeTheAddIfAsked) {
  auto options = reproduce();
  options.tap = ProbeTap::before_add;
  auto train = all_samples(300, 1);
  auto test = all_samples(90, 2);
  for (auto* record : {&train, &test}) {
    record->layers.resize(1);
    record->layers[0].before_add = torch::one_hot(record->labels, 3).to(torch::kFloat32);
  }
  StreamedProbes probes(options);
  // Not cut: the other tensors of a layer would have to be cut as well.
  do {
    probes.see_train(train);
  } while (probes.wants_train_again());
  probes.see_test(test);
  const auto result = probes.results()[0];
  EXPECT_EQ(accuracy(result), 1);
  EXPECT_EQ(result.definition["tap"], "after normalisation, before the residual add");
}

TEST(StreamedProbes, CannotBeMerged) {
  StreamedProbes first(reproduce());
  StreamedProbes second(reproduce());
  EXPECT_EQ(error_of([&] { first.merge(second); }),
            "linear_probe: probes that learnt from two streams cannot be merged; protocol diagnose "
            "can, or show one of them both streams");
}

TEST(StreamedProbes, RejectATestSplitBeforeTheLastPass) {
  StreamedProbes probes(reproduce());
  probes.see_train(all_samples(90, 1));
  EXPECT_TRUE(probes.wants_train_again());
  EXPECT_EQ(
      error_of([&] { probes.see_test(all_samples(90, 2)); }),
      "linear_probe: needs 3 passes over the training split of the trained dataset before its "
      "test split, got 1");
}

TEST(StreamedProbes, RejectRecordsThatDoNotSayWhichSamplesTheyAreOf) {
  auto record = all_samples(90, 1);
  record.indices = torch::Tensor();
  EXPECT_EQ(error_of([&] { StreamedProbes(reproduce()).see_train(record); }),
            "linear_probe: records of the training split must say which samples they are of, so "
            "that the same ones are held out in every pass");
  auto options = reproduce();
  options.l2 = {0.1};  // nothing to choose
  StreamedProbes(options).see_train(record);
}

TEST(StreamedProbes, RejectFewerSamplesThanClasses) {
  StreamedProbes probes(reproduce());
  probes.see_train(all_samples(2, 1));
  EXPECT_EQ(error_of([&] { probes.wants_train_again(); }),
            "linear_probe: needs at least as many training samples as classes, 3, got 2");
}

TEST(StreamedProbes, NameTheLayerThatIsNotFinite) {
  for (const auto& options : {reproduce(), published()}) {
    auto record = all_samples(900, 1);
    record.layers[1].output[700][3] = std::numeric_limits<float>::quiet_NaN();
    StreamedProbes probes(options);
    EXPECT_EQ(error_of([&] { probes.see_train(record); }),
              "linear_probe: layer 'telling': features must be finite");
  }
  // Among the samples that statistics are of.
  auto early = all_samples(900, 1);
  early.layers[1].output[300][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { StreamedProbes(reproduce()).see_train(early); }),
            "linear_probe: layer 'telling': features must be finite");
  StreamedProbes probes(published());
  auto test = all_samples(90, 2);
  test.layers[1].output[7][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { show(probes, all_samples(90, 1), test); }),
            "linear_probe: features of layer 'telling' must be finite, hold NaN or infinity");
}

TEST(StreamedProbes, RejectALayerThatIsMissing) {
  StreamedProbes probes(published());
  probes.see_train(all_samples(90, 1));
  auto other = all_samples(90, 1);
  other.layers.pop_back();
  EXPECT_EQ(error_of([&] { probes.see_train(other); }),
            "linear_probe: layer 'blind' must be in every record of both splits");
}

TEST(StreamedProbes, HoldMemoryThatHardlyGrowsWithTheSamples) {
  const auto example = chosen(all_samples(1, 1), labels_of({0}));
  for (const auto& options : {reproduce(), published()}) {
    const auto bytes = [&](int64_t samples) {
      return StreamedProbes(options).memory(example, samples, {});
    };
    EXPECT_EQ(bytes(1001) - bytes(1000), 2);  // whether each layer's probe was right
    EXPECT_GT(bytes(1000), 16 * 4 * 256);
  }
}

TEST(StreamedProbes, CountTheClassesOfOodDatasets) {
  const auto example = chosen(all_samples(1, 1), labels_of({0}));  // two layers 8 wide, 3 classes
  for (const auto& options : {reproduce(), published()}) {
    const auto bytes = [&](int64_t most, int64_t all) {
      return StreamedProbes(options).memory(example, 1000,
                                            {.most_classes = most, .all_classes = all});
    };
    EXPECT_EQ(bytes(0, 0), bytes(3, 3));
    EXPECT_EQ(bytes(3, 13) - bytes(3, 3), 2 * 8 * 10 * 4);       // finished probes
    EXPECT_GT(bytes(100, 103) - bytes(3, 103), 2 * 8 * 97 * 4);  // those in training
  }
}

}  // namespace kelvin::streamed_probes_test
