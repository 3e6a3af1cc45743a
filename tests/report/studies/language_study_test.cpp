#include <gtest/gtest.h>

#include <string>

#include "kelvin/report/studies/study.h"

namespace kelvin::language_study_test {

// One layer of two heads, up to 8 keys within the context and 16 beyond.
Readings two_heads() {
  Readings readings;
  const Definition model = {{"model", "x.bin"},
                            {"text", "text.txt"},
                            {"context", 8},
                            {"read_tokens", 3000},
                            {"window", 16}};
  for (const char* map : {"softmax", "adaptive"}) {
    const auto add_perplexity = [&](const char* part, int64_t first, int64_t last, double value) {
      auto meaning = model;
      meaning.update({{"attention", map},
                      {"part", part},
                      {"first_position", first},
                      {"last_position", last},
                      {"tokens", 100}});
      readings.push_back({.name = "perplexity", .value = value, .definition = meaning});
    };
    add_perplexity("within the trained context", 1, 7, 12.5);
    add_perplexity("beyond the trained context", 8, 15, 250);
    add_perplexity("range", 1, 8, 13);
    add_perplexity("range", 9, 16, 260);
    for (int64_t head = 0; head < 2; ++head) {
      for (const auto& [least, most] : {std::pair<int64_t, int64_t>{1, 8}, {9, 16}}) {
        const auto add = [&](const char* name, const char* statistic, double value) {
          auto meaning = model;
          meaning.update({{"attention", map},
                          {"layer", 0},
                          {"head", head},
                          {"least_keys", least},
                          {"most_keys", most},
                          {"statistic", statistic}});
          readings.push_back({.name = name, .value = value, .definition = meaning});
        };
        const char* mean = "mean over queries";
        const double nats = least == 1 ? 1.5 : 2.5;
        add("logit_spread", mean, 3 + static_cast<double>(head));
        add("logit_spread", "largest of a query", 6);
        add("logit_spread_bound", mean, 40);
        add("attention_entropy_nats", mean, nats / (head == 0 ? 1 : 2));
        add("attention_log_keys", mean, nats);
        add("attention_top_weight", mean, 0.4);
        add("attention_top_weight_bound", mean, 0.9);
        add("dispersion_violations", "queries beyond a bound", 0);
      }
    }
  }
  return readings;
}

TEST(LanguageStudy, TellsPerplexityWithinAndBeyondTheContext) {
  const auto study = language_study(two_heads(), {}, "");
  EXPECT_EQ(study.title, "Attention of x.bin over text.txt");
  ASSERT_GE(study.findings.size(), 5U);
  EXPECT_EQ(study.findings[0], "3000 tokens in windows of 16.");
  EXPECT_EQ(study.findings[1],
            "Perplexity with softmax: 12.5 up to the 8 tokens that the model was trained on, 250 "
            "beyond.");
  EXPECT_EQ(study.findings.back(),
            "0 queries of a head have a spread of scores beyond the spectral norms of Q and K, or "
            "a weight beyond what their spread allows.");
  ASSERT_EQ(study.tables.size(), 3U);
  EXPECT_EQ(study.tables[0].columns.size(), 4U);
  EXPECT_EQ(study.tables[0].rows.size(), 4U);
  EXPECT_EQ(study.tables[1].rows.size(), 2U);
  EXPECT_EQ(study.tables[2].rows.size(), 2U);
  EXPECT_EQ(study.tables[2].rows[1][5], "0.50");
}

TEST(LanguageStudy, DrawsCurvesAndMapsOfHeads) {
  HeatMapFigure weights{.title = "Weights of layer 0, head 1", .rows = {{1, 0}, {0.5, 0.5}}};
  const auto study = language_study(two_heads(), {weights}, "");
  ASSERT_EQ(study.figures.size(), 5U);
  EXPECT_EQ(study.figures[0].name, "perplexity");
  const auto& heads = std::get<HeatMapFigure>(study.figures[2].figure);
  EXPECT_EQ(heads.rows, (std::vector<std::vector<double>>{{1, 0.5}}));
  EXPECT_EQ(std::get<HeatMapFigure>(study.figures[4].figure).rows, weights.rows);
}

TEST(LanguageStudy, ShowsWhatTheModelWrites) {
  const auto study = language_study({}, {}, "Once upon\x1b a\ntime");
  EXPECT_EQ(study.findings, (std::vector<std::string>{"It writes: Once upon? a time"}));
  EXPECT_TRUE(study.tables.empty());
}

}  // namespace kelvin::language_study_test
