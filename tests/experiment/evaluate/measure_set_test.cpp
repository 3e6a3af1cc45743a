#include "kelvin/experiment/evaluate/measure_set.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "kelvin/measures/measure.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"

namespace kelvin::measure_set_test {

// Remembers what it was shown, and wants so many passes.
class Witness : public Measure {
 public:
  Witness(Needs needs, int64_t passes, int64_t bytes)
      : needs_(needs), passes_(passes), train_passes_(passes), bytes_(bytes) {}

  Needs needs() const override { return needs_; }
  void see_sample(const Record&) override { ++samples_; }
  void update(const Record&) override { ++updates_; }
  void see_gradients(const Record&) override { ++gradients_; }
  bool wants_another_pass() override { return --passes_ > 0; }
  bool wants_train_again() override { return --train_passes_ > 0; }
  void merge(const Measure&) override {}
  NamedTensors state() const override { return {}; }
  Readings compute() const override {
    const auto reading = [](const char* name, int64_t value) {
      return Reading{.name = name, .value = static_cast<double>(value)};
    };
    return {reading("samples", samples_), reading("updates", updates_),
            reading("gradients", gradients_)};
  }
  NamedTensors curves() const override {
    return {{"curve" + std::to_string(bytes_), torch::ones({1})}};
  }
  int64_t memory(const Record&, int64_t samples) const override { return bytes_ * samples; }

 private:
  Needs needs_;
  int64_t passes_;
  int64_t train_passes_;
  int64_t bytes_;
  int64_t samples_ = 0;
  int64_t updates_ = 0;
  int64_t gradients_ = 0;
};

Record a_record() { return record_of(torch::zeros({2, 3}), torch::zeros({2}, torch::kInt64)); }

MeasureSet two_witnesses() {
  MeasureSet set;
  set.add("simple", std::make_unique<Witness>(Needs{.train_split = true}, 1, 10));
  set.add("thorough",
          std::make_unique<Witness>(Needs{.layers = true, .gradients = true, .sample = 5}, 3, 90));
  return set;
}

TEST(MeasureSet, NeedsWhatAnyOfThemNeeds) {
  const auto set = two_witnesses();
  EXPECT_TRUE(set.needs().train_split);
  EXPECT_TRUE(set.needs().layers);
  EXPECT_TRUE(set.needs().gradients);
  EXPECT_FALSE(set.needs().attention);
  EXPECT_FALSE(set.needs().ood);
  EXPECT_EQ(set.needs().sample, 5);
}

TEST(MeasureSet, ShowsEachWhatItAskedForAndFurtherPassesOnlyToThoseWhoWantThem) {
  auto set = two_witnesses();
  set.see_sample(a_record());
  int64_t passes = 0;
  do {
    set.update(a_record());
    ++passes;
  } while (set.wants_another_pass());
  set.see_gradients(a_record());
  EXPECT_EQ(passes, 3);
  std::vector<std::string> names;
  const auto readings = set.compute([&](size_t place, const std::string& name) {
    names.push_back(std::to_string(place) + name);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"0simple", "1thorough"}));
  std::vector<double> values;
  for (const auto& reading : readings) values.push_back(reading.value);
  EXPECT_EQ(values, (std::vector<double>{0, 1, 0, 1, 3, 1}));
  EXPECT_EQ(set.curves().size(), 2U);
}

// A witness of every look.
class Diarist : public Witness, public KeepsSnapshots {
 public:
  using Witness::Witness;
  NamedTensors curves_of_snapshot() const override { return curves(); }
};

TEST(MeasureSet, HasTheCurvesOfThoseWhoKeepThemOfEachLook) {
  auto set = two_witnesses();
  EXPECT_TRUE(set.curves_of_snapshot().empty());
  set.add("diary", std::make_unique<Diarist>(Needs{}, 1, 7));
  const auto curves = set.curves_of_snapshot();
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_TRUE(curves.contains("curve7"));
  set.add("copy", std::make_unique<Diarist>(Needs{}, 1, 7));
  EXPECT_EQ(error_of([&] { set.curves_of_snapshot(); }),
            "measure 'copy': curve 'curve7' is another measure's already");
}

TEST(MeasureSet, ShowsATrainingSplitAgainOnlyToThoseWhoWantItAndWhatFollowsToAll) {
  auto set = two_witnesses();
  for (int64_t dataset = 0; dataset < 2; ++dataset) {
    do {
      set.update(a_record());
    } while (set.wants_train_again());
  }
  set.update(a_record());
  const auto readings = set.compute();
  // Three passes of the first, which all of them wanted but the simple one; then one each.
  EXPECT_EQ(readings[1].value, 3);
  EXPECT_EQ(readings[4].value, 5);
}

TEST(MeasureSet, RejectsLogitsThatAreNotFinite) {
  auto set = two_witnesses();
  for (const double value : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    auto record = a_record();
    record.logits[1][2] = value;
    const auto* const message =
        "measures: logits of the test split must be finite, have a NaN or an infinity";
    EXPECT_EQ(error_of([&] { set.update(record); }), message);
    EXPECT_EQ(error_of([&] { set.see_sample(record); }), message);
    record.split = Split::train;
    record.ood = "textures10";
    EXPECT_EQ(error_of([&] { set.update(record); }),
              "measures: logits of the train split of 'textures10' must be finite, have a NaN or "
              "an infinity");
  }
  EXPECT_EQ(set.compute()[1].value, 0);
}

TEST(MeasureSet, RejectsLabelsOfNoClassOfTheirDataset) {
  auto set = two_witnesses();
  const auto message = [&](int64_t label) {
    auto record = a_record();
    record.labels[1] = label;
    const auto of_update = error_of([&] { set.update(record); });
    EXPECT_EQ(error_of([&] { set.see_sample(record); }), of_update);
    return of_update;
  };
  EXPECT_EQ(message(3), "measures: labels must be in [0, 3), got 3");
  EXPECT_EQ(message(-1), "measures: labels must be in [0, 3), got -1");
  auto ood = a_record();
  ood.ood = "textures47";
  ood.classes = 47;
  ood.labels[1] = 46;
  set.update(ood);
  auto empty = record_of(torch::zeros({0, 3}), torch::zeros({0}, torch::kInt64));
  set.update(empty);
  empty.labels = torch::Tensor();
  set.update(empty);
}

TEST(MeasureSet, RefusesMoreMemoryThanIsAllowed) {
  const auto set = two_witnesses();
  EXPECT_EQ(set.checked_memory(a_record(), 1024, 200'000), 102'400);
  EXPECT_EQ(error_of([&] { set.checked_memory(a_record(), 1024, 51'200); }),
            "measure.memory: the measures need 100 KiB for 1024 samples, 'thorough' alone 90 KiB; "
            "50 KiB are allowed");
}

}  // namespace kelvin::measure_set_test
