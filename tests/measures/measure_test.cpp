#include "kelvin/measures/measure.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kelvin/report/page/glossary.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::measure_test {

// A batch of a small network with all that a record can hold.
Record full_record(Split split, const std::string& ood, uint64_t seed) {
  const int64_t classes = ood.empty() ? 3 : 4;
  const auto labels = torch::arange(24) % classes;
  const auto weight = noise({3, 5}, 1000);
  const auto bias = noise({3}, 1001);
  const auto maps = noise({24, 2, 4, 4}, seed) + labels.view({-1, 1, 1, 1});
  const auto features = noise({24, 5}, seed + 1) + labels.unsqueeze(1);
  const auto logits = features.matmul(weight.t()) + bias;
  auto record = record_of(logits.to(torch::kFloat32), labels, split, ood);
  record.classes = classes;
  record.features = features.to(torch::kFloat32);
  record.weight = weight.to(torch::kFloat32);
  record.bias = bias.to(torch::kFloat32);
  LayerRecord first;
  first.name = "conv";
  first.weight = noise({2, 2, 3, 3}, 1002).to(torch::kFloat32);
  first.input = maps.to(torch::kFloat32);
  first.pre_activation = torch::conv2d(first.input, first.weight);
  first.output = maps.relu().to(torch::kFloat32);
  LayerRecord last;
  last.name = "linear";
  last.weight = record.weight;
  last.bias = record.bias;
  last.input = record.features;
  last.pre_activation = record.logits;
  last.output = record.logits;
  if (split == Split::train && ood.empty()) {
    first.gradient = noise({2, 2, 3, 3}, seed + 4).to(torch::kFloat32);
    last.gradient = noise({3, 5}, seed + 5).to(torch::kFloat32);
  }
  record.layers = {first, last};
  const auto attention = noise({24, 2, 5, 3}, seed + 2).matmul(noise({24, 2, 3, 5}, seed + 3));
  record.attention = {{.name = "attention",
                       .logits = attention.to(torch::kFloat32),
                       .weights = attention.softmax(-1).to(torch::kFloat32),
                       .head_width = 3}};
  return record;
}

// Three batches of every split of both populations, in this order.
std::vector<Record> full_stream() {
  std::vector<Record> records;
  for (uint64_t batch = 0; batch < 3; ++batch) {
    for (const std::string ood : {"", "textures"}) {
      for (const auto split : {Split::train, Split::test}) {
        records.push_back(full_record(split, ood, 10 * records.size()));
      }
    }
  }
  return records;
}

class EveryMeasure : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Measure> make() { return make_measure(GetParam()); }

  // The sample and the gradients are those of the whole stream, whatever part of it is shown.
  std::unique_ptr<Measure> shown(const std::vector<Record>& records) const {
    auto measure = make();
    show_sample(*measure, stream_);
    do {
      for (const auto& record : records) measure->update(record);
    } while (measure->wants_another_pass());
    show_gradients(*measure, stream_);
    return measure;
  }

  const std::vector<Record> stream_ = full_stream();
  const std::vector<Record> first_{stream_.begin(), stream_.begin() + 4};
  const std::vector<Record> second_{stream_.begin() + 4, stream_.end()};
};

TEST_P(EveryMeasure, HasASummary) { EXPECT_FALSE(measures().find(GetParam()).summary.empty()); }

TEST_P(EveryMeasure, GivesReadingsThatSayWhatTheyMean) {
  const auto readings = shown(stream_)->compute();
  EXPECT_FALSE(readings.empty());
  for (const auto& reading : readings) {
    EXPECT_FALSE(term(reading.name).meaning.empty()) << "no words for " << reading.name;
    EXPECT_TRUE(std::isfinite(reading.value)) << reading.name;
    EXPECT_TRUE(reading.definition.is_object() && !reading.definition.empty()) << reading.name;
  }
}

TEST_P(EveryMeasure, MergedFromTwoHalvesIsThatOfTheWhole) {
  auto merged = shown(first_);
  merged->merge(*shown(second_));
  const auto whole = shown(stream_);
  expect_same(merged->compute(), whole->compute(), 1e-6);
  const auto state = merged->state();
  const auto expected = whole->state();
  EXPECT_FALSE(expected.empty());
  ASSERT_EQ(state.size(), expected.size());
  for (const auto& [name, tensor] : expected) expect_close(state.at(name), tensor, 1e-8);
}

TEST_P(EveryMeasure, MergedIntoAnEmptyOneLeavesItsSourcesAlone) {
  const auto first = shown(first_);
  const auto second = shown(second_);
  const auto before = first->compute();
  auto merged = make();
  merged->merge(*first);
  merged->merge(*second);
  merged->update(stream_.back());
  expect_same(first->compute(), before);
}

TEST_P(EveryMeasure, HandsOutAStateThatLaterBatchesDoNotChange) {
  auto measure = shown(first_);
  NamedTensors copies;
  const auto state = measure->state();
  for (const auto& [name, tensor] : state) copies[name] = tensor.clone();
  for (const auto& record : second_) measure->update(record);
  for (const auto& [name, tensor] : state) expect_close(tensor, copies.at(name), 0);
}

TEST_P(EveryMeasure, RejectsAnEmptyStream) {
  EXPECT_TRUE(error_of([] { make()->compute(); }).starts_with(GetParam() + ": "));
}

TEST_P(EveryMeasure, LooksOnlyAtWhatItSaysItNeeds) {
  const auto needs = make()->needs();
  std::vector<Record> needed;
  for (auto record : stream_) {
    if (record.is_ood() && !needs.ood) continue;
    if (record.split == Split::train && !needs.train_split) continue;
    if (!needs.layers) record.layers.clear();
    if (!needs.attention) record.attention.clear();
    needed.push_back(record);
  }
  expect_same(shown(needed)->compute(), shown(stream_)->compute());
}

INSTANTIATE_TEST_SUITE_P(Measures, EveryMeasure,
                         testing::Values("accuracy", "alignment", "attention_rank", "calibration",
                                         "class_statistics", "gradient_rank", "layer_similarity",
                                         "layer_spectrum", "linear_probe", "logits_norm",
                                         "loss_symmetry", "neural_collapse", "norm_growth",
                                         "post_softmax_rank", "solution_rank"),
                         [](const auto& info) { return info.param; });

TEST(Measures, RejectsAnUnknownNameAndSuggestsTheNearest) {
  EXPECT_TRUE(error_of([] {
                measures().find("solution_rang");
              }).starts_with("no measure named 'solution_rang'; did you mean 'solution_rank'?"));
}

}  // namespace kelvin::measure_test
