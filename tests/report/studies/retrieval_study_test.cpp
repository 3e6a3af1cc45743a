#include <gtest/gtest.h>

#include <algorithm>

#include "kelvin/report/studies/study.h"

namespace kelvin::retrieval_study_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Three seeds of softmax and of adaptive in its place, and one of another map, at two sizes.
Readings three_seeds() {
  Readings readings;
  const auto add = [&](const std::string& name, const std::string& trained, const std::string& used,
                       int64_t seed, int64_t n, double value) {
    readings.push_back({.name = name,
                        .value = value,
                        .definition = {{"n", n},
                                       {"sets", 100},
                                       {"seed", seed},
                                       {"trained_with", trained},
                                       {"attention", used},
                                       {"trained_steps", 5000},
                                       {"trained_sizes", {5, 16}}}});
  };
  const auto add_all = [&](const std::string& trained, const std::string& used, int64_t seed,
                           int64_t n, double accuracy, double entropy) {
    add("retrieval_accuracy", trained, used, seed, n, accuracy);
    add("attention_entropy_nats", trained, used, seed, n, entropy);
    add("attention_top_weight", trained, used, seed, n, 0.5);
    add("attention_right_weight", trained, used, seed, n, 0.4);
  };
  for (int64_t seed = 0; seed < 3; ++seed) {
    const auto noise = 0.01 * static_cast<double>(seed);
    add_all("softmax", "softmax", seed, 16, 0.98, 1);
    add_all("softmax", "softmax", seed, 1024, 0.5 + noise, 6.5);
    add_all("softmax", "adaptive", seed, 16, 0.98, 1);
    add_all("softmax", "adaptive", seed, 1024, 0.6 + 1.1 * noise, 6.5);
    for (const int64_t n : {16, 1024}) {
      readings.push_back({.name = "logit_spread",
                          .value = 7,
                          .definition = {{"n", n},
                                         {"seed", seed},
                                         {"trained_with", "softmax"},
                                         {"statistic", "mean over sets"}}});
    }
  }
  add_all("top_k", "top_k", 0, 16, 0.97, 1);
  add_all("top_k", "top_k", 0, 1024, 0.9, 1);
  readings.push_back({.name = "dispersion_violations", .value = 0});
  return readings;
}

TEST(RetrievalStudy, ComparesMapsWithPairedTestsAndThePaper) {
  const auto study = retrieval_study(three_seeds(), {});
  const auto& table = study.tables.at(0);
  ASSERT_EQ(table.columns.size(), 6U);
  EXPECT_EQ(table.rows.at(0),
            (std::vector<std::string>{"16", "98.0 ± 0.0", "98.0 ± 0.0", "1.000", "98.6", "98.6"}));
  EXPECT_EQ(table.rows.at(1).at(1), "51.0 ± 2.5");
  EXPECT_EQ(table.rows.at(1).at(4), "53.8");
  EXPECT_TRUE(contains(study.tables.at(1).title, "each network with the map it was trained with"));
  EXPECT_EQ(study.tables.at(1).rows.at(1),
            (std::vector<std::string>{"1024", "51.0 ± 2.5", "90.0"}));
}

TEST(RetrievalStudy, SaysHowEntropyGrowsAndWhereThePolynomialEnds) {
  const auto study = retrieval_study(three_seeds(), {});
  const auto says = [&](const std::string& part) {
    return std::any_of(study.findings.begin(), study.findings.end(),
                       [&](const std::string& each) { return contains(each, part); });
  };
  EXPECT_TRUE(says("its entropy grows from 1.00 to 6.50 nats: by 1.32 for each nat of ln n"));
  EXPECT_TRUE(says("From n = 1024 on the mean entropy of softmax, 6.50 nats, is above"));
  EXPECT_TRUE(says("differs from softmax with p < 0.05 at n = 1024 (+10.1)"));
  EXPECT_TRUE(says("0 sets have weights beyond"));
}

TEST(RetrievalStudy, ShowsHeatMapsAsTheyAre) {
  const auto study = retrieval_study(three_seeds(), {{.title = "Weights by x", .rows = {{1, 0}}}});
  const auto& figure = study.figures.back();
  EXPECT_EQ(figure.name, "weights-by-x");
  EXPECT_EQ(std::get<HeatMapFigure>(figure.figure).rows.size(), 1U);
}

TEST(RetrievalStudy, OfOtherNetworksAloneHasNoBaseline) {
  auto readings = three_seeds();
  std::erase_if(readings, [](const Reading& reading) {
    return reading.definition.value("trained_with", "") == "softmax";
  });
  const auto study = retrieval_study(readings, {});
  EXPECT_TRUE(contains(study.tables.at(0).title, "each network with the map it was trained with"));
}

}  // namespace kelvin::retrieval_study_test
