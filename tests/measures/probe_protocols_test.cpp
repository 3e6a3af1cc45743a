#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/probe_records.h"

namespace kelvin::probe_protocols_test {

// Shows training splits as often as they are wanted, the samples in another order each time, each
// right before the test split of the same population.
Readings streamed(const std::vector<Record>& records, const Values& values) {
  const auto measure = make_measure("linear_probe", values);
  const auto of = [&](Split split, const std::string& ood) {
    auto record = *std::find_if(records.begin(), records.end(), [&](const Record& each) {
      return each.split == split && each.ood == ood;
    });
    record.indices = torch::arange(record.labels.size(0));
    return record;
  };
  for (const std::string ood : {"", "textures"}) {
    uint64_t pass = 0;
    do {
      auto record = of(Split::train, ood);
      const auto order = noise({record.labels.size(0)}, pass++).argsort();
      record.labels = record.labels.index_select(0, order);
      record.indices = record.indices.index_select(0, order);
      for (auto& layer : record.layers) layer.output = layer.output.index_select(0, order);
      measure->update(record);
    } while (measure->wants_train_again());
    measure->update(of(Split::test, ood));
  }
  return measure->compute();
}

TEST(LinearProbe, OfEveryProtocolSeesTheTunnel) {
  const std::vector<Values> protocols = {
      {{"protocol", "diagnose"}},
      {{"protocol", "reproduce"}, {"passes", 20}, {"batch", 10}},
      {{"protocol", "published"}, {"passes", 60}, {"batch", 10}, {"rate", 0.01}}};
  for (const auto& values : protocols) {
    const auto readings = streamed(tunnel(), values);
    SCOPED_TRACE(values.at("protocol"));
    expect_close(doubles(accuracies_of(readings)), doubles({1. / 3, 1, 1}), 1e-12);
    expect_close(doubles(accuracies_of(readings, "textures")), doubles({1, 1, 1. / 5}), 1e-12);
    EXPECT_DOUBLE_EQ(reading_of(readings, "rho").value, 4. / 5);
    EXPECT_DOUBLE_EQ(reading_of(readings, "kappa", {{"last_layer", "logits"}}).value, 2. / 3);
    for (const auto& reading : readings) {
      EXPECT_EQ(reading.definition["protocol"], values.at("protocol")) << reading.name;
      EXPECT_TRUE(reading.interval) << reading.name;
    }
  }
}

TEST(LinearProbe, AsksForAsManyPassesAsItsProtocolHas) {
  const auto passes_of = [](const Values& values) {
    const auto measure = make_measure("linear_probe", values);
    EXPECT_FALSE(measure->wants_train_again());  // nothing to train on
    auto record = tunnel()[0];
    record.indices = torch::arange(record.labels.size(0));
    int64_t passes = 0;
    do {
      measure->update(record);
      ++passes;
    } while (measure->wants_train_again());
    return passes;
  };
  EXPECT_EQ(passes_of({}), 1);
  EXPECT_EQ(passes_of({{"protocol", "reproduce"}}), 2);
  EXPECT_EQ(passes_of({{"protocol", "published"}}), 30);
}

TEST(LinearProbe, ReadsBeforeTheAddIfAsked) {
  auto records = noisy_layer();
  for (auto& record : records) {
    record.layers[0].before_add = torch::one_hot(record.labels, 3).to(torch::kFloat32);
  }
  const auto readings = measured("linear_probe", records, {{"tap", "before_add"}});
  EXPECT_EQ(accuracies_of(readings).at(0), 1);
  EXPECT_EQ(reading_of(readings, "probe_accuracy").definition["tap"],
            "after normalisation, before the residual add");
  EXPECT_EQ(reading_of(readings, "kappa").definition["tap"],
            "after normalisation, before the residual add where there is one");
  EXPECT_LT(accuracies_of(measured("linear_probe", records)).at(0), 1);
}

TEST(LinearProbe, CannotMergeWhatLearntFromTwoStreams) {
  const Values values = {{"protocol", "published"}};
  const auto first = make_measure("linear_probe", values);
  const auto second = make_measure("linear_probe", values);
  for (auto* measure : {first.get(), second.get()}) measure->update(tunnel()[0]);
  EXPECT_EQ(error_of([&] { first->merge(*second); }),
            "linear_probe: probes that learnt from two streams cannot be merged; protocol diagnose "
            "can, or show one of them both streams");
  // One that had seen nothing still has not.
  const auto empty = make_measure("linear_probe", values);
  EXPECT_NE(error_of([&] { empty->merge(*second); }), "");
  EXPECT_EQ(error_of([&] { empty->compute(); }), "linear_probe: no layers were recorded");
}

TEST(LinearProbe, TakesOverAllPopulationsIfItHasSeenNothing) {
  const auto full = make_measure("linear_probe");
  for (const auto& record : tunnel()) full->update(record);
  const auto empty = make_measure("linear_probe");
  empty->merge(*full);
  expect_same(empty->compute(), full->compute());
}

TEST(LinearProbe, RejectsUnknownProtocolsAndTaps) {
  const auto making = [](const Values& values) {
    return error_of([&] { make_measure("linear_probe", values); });
  };
  EXPECT_EQ(making({{"protocol", "tunnel"}}),
            "measure.linear_probe.protocol: must be diagnose, reproduce or published, got "
            "'tunnel'");
  EXPECT_EQ(making({{"tap", "input"}}),
            "measure.linear_probe.tap: must be output or before_add, got 'input'");
  EXPECT_EQ(making({{"protocol", "reproduce"}, {"passes", 1}}),
            "measure.linear_probe.passes: must be at least 2, got 1");
  EXPECT_EQ(making({{"protocol", "published"}, {"rate", 0.0}}),
            "measure.linear_probe.rate: must be finite and above 0, got 0");
}

}  // namespace kelvin::probe_protocols_test
