#include "kelvin/measures/feature_spectrum.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::feature_spectrum_test {

torch::Tensor exact_values(const torch::Tensor& rows) {
  const auto doubles = rows.to(torch::kFloat64);
  const auto values = torch::linalg_svdvals(doubles - doubles.mean(0));
  return values.narrow(0, 0, std::min(values.size(0), rows.size(0) - 1));
}

torch::Tensor shown(FeatureSpectrum spectrum, const torch::Tensor& rows, int64_t batch) {
  for (const auto& part : rows.split(batch)) spectrum.update(part);
  return spectrum.values().corrected;
}

// Many features in few directions: what deep layers look like.
torch::Tensor collapsed_rows(int64_t rows, int64_t dims) {
  const auto weights = torch::logspace(0, -2, 30, 10, torch::kFloat64);
  return (noise({rows, 30}, 1) * weights).matmul(noise({30, dims}, 2)).to(torch::kFloat32);
}

TEST(FeatureSpectrum, OfFewFeaturesIsExactByEitherSide) {
  const auto wide = noise({40, 100}, 0);
  const auto tall = noise({300, 20}, 0);
  for (const auto& rows : {wide, tall}) {
    const FeatureSpectrum spectrum(rows.size(1), {}, 0);
    EXPECT_FALSE(spectrum.is_sketched());
    expect_close(shown(spectrum, rows, 7), exact_values(rows), 1e-9);
    expect_close(shown(spectrum, rows, 1000), exact_values(rows), 1e-9);
  }
}

TEST(FeatureSpectrum, OfManyFeaturesIsSketchedUnlessAskedOtherwise) {
  const auto rows = collapsed_rows(300, 5000);
  const SpectrumOptions sketched{.sketch = 400, .anchors = 50};
  FeatureSpectrum spectrum(5000, sketched, 0);
  ASSERT_TRUE(spectrum.is_sketched());
  EXPECT_EQ(spectrum.width(), 400);
  spectrum.anchor_to(rows.narrow(0, 0, 100));
  EXPECT_EQ(spectrum.anchors(), 30);
  const auto expected = exact_values(rows).narrow(0, 0, 30);
  const auto close = shown(spectrum, rows, 64).narrow(0, 0, 30);
  EXPECT_LT((close / expected - 1).abs().max().item<double>(), 1e-3);
  auto exact = sketched;
  exact.protocol = SpectrumProtocol::exact;
  const auto values = shown(FeatureSpectrum(5000, exact, 0), rows, 64).narrow(0, 0, 30);
  EXPECT_LT((values / expected - 1).abs().max().item<double>(), 1e-6);
}

// Ten large directions, which the sample for the anchors has only seen in part, over a long tail.
TEST(FeatureSpectrum, LosesWhatTheTailAddsToLargeValues) {
  constexpr int64_t kDims = 6000;
  const auto strengths = torch::linspace(3, 1.5, 10, torch::kFloat64);
  // More samples than the sketch has numbers, and fewer: both sides of the matrix.
  for (const int64_t samples : {700, 250}) {
    const auto large = (noise({samples, 10}, 1) * strengths).matmul(noise({10, kDims}, 2));
    const auto rows = (large + 20 * noise({samples, kDims}, 3)).to(torch::kFloat32);
    FeatureSpectrum spectrum(kDims, {.sketch = 300, .anchors = 20}, 0);
    spectrum.anchor_to(rows.narrow(0, 0, 40));
    for (const auto& part : rows.split(64)) spectrum.update(part);
    const auto values = spectrum.values();
    const auto expected = exact_values(rows).narrow(0, 0, 10);
    const auto error_of_mean = [&](const torch::Tensor& found) {
      return (found.narrow(0, 0, 10) / expected - 1).mean().item<double>();
    };
    EXPECT_GT(error_of_mean(values.projected), 0.05) << samples;
    EXPECT_LT(std::abs(error_of_mean(values.corrected)), 0.025) << samples;
    EXPECT_TRUE((values.corrected.diff() <= 0).all().item<bool>());
    // The smallest are the tail itself.
    EXPECT_NEAR(values.corrected[-1].item<double>(), values.projected[-1].item<double>(),
                0.3 * values.projected[-1].item<double>());
  }
}

TEST(FeatureSpectrum, OfTheTunnelProtocolIsThatOf8000RandomFeatures) {
  const SpectrumOptions tunnel{.protocol = SpectrumProtocol::tunnel};
  const auto rows = noise({20, 9000}, 3);
  const FeatureSpectrum spectrum(9000, tunnel, 5);
  EXPECT_EQ(spectrum.width(), 8000);
  const auto values = shown(spectrum, rows, 6);
  expect_close(shown(FeatureSpectrum(9000, tunnel, 5), rows, 20), values, 1e-8);
  // Close to the share of the features, and not the same for other features.
  const auto all = exact_values(rows);
  EXPECT_NEAR((values / all).mean().item<double>(), std::sqrt(8000.0 / 9000.0), 0.01);
  EXPECT_FALSE(torch::allclose(shown(FeatureSpectrum(9000, tunnel, 6), rows, 20), values));
  const FeatureSpectrum few(500, tunnel, 5);
  EXPECT_EQ(few.width(), 500);
}

TEST(FeatureSpectrum, OfTwoHalvesIsThatOfTheWhole) {
  for (const int64_t samples : {60, 600}) {
    for (const int64_t dims : {50, 90, 3000}) {
      const auto rows = noise({samples, dims}, 4).to(torch::kFloat32);
      const SpectrumOptions options{.sketch = 200, .anchors = 20};
      FeatureSpectrum first(dims, options, 1);
      first.anchor_to(rows.narrow(0, 0, 40));
      auto second = first;
      auto whole = first;
      for (const auto& part : rows.split(37)) whole.update(part);
      first.update(rows.narrow(0, 0, samples / 3));
      second.update(rows.narrow(0, samples / 3, samples - samples / 3));
      first.merge(second);
      EXPECT_EQ(first.rows(), samples);
      const auto expected = whole.values().corrected;
      expect_close(first.values().corrected, expected, 1e-4 * expected[0].item<double>());
    }
  }
}

TEST(FeatureSpectrum, RefusesToMergeWhatWasProjectedOtherwise) {
  const SpectrumOptions options{.sketch = 100, .anchors = 10};
  FeatureSpectrum first(3000, options, 1);
  FeatureSpectrum second(3000, options, 1);
  second.anchor_to(noise({30, 3000}, 0));
  EXPECT_EQ(error_of([&] { first.merge(second); }),
            "FeatureSpectrum: only what was projected alike can be merged; show both the same "
            "sample");
}

TEST(FeatureSpectrum, HoldsNoMoreThanItSaysHoweverManySamples) {
  const SpectrumOptions sketch;
  const auto few = FeatureSpectrum::bytes_for(65536, 10'000, sketch);
  const auto many = FeatureSpectrum::bytes_for(65536, 100'000, sketch);
  EXPECT_EQ(many.held, few.held);
  EXPECT_EQ(many.working, few.working);
  EXPECT_EQ(many.adding, few.adding);
  EXPECT_LT(few.held + few.working, int64_t{250} << 20);
  const SpectrumOptions exact{.protocol = SpectrumProtocol::exact};
  const auto [held, working, adding] = FeatureSpectrum::bytes_for(1000, 100, exact);
  const int64_t rows = 100 * 1000 * 4;
  const int64_t products = 100 * 100 * 8;
  EXPECT_EQ(held, rows);
  EXPECT_EQ(adding, 0);
  // In one piece, and the products, their lower half, and what eigenvalues are found in.
  EXPECT_EQ(working, rows + 3 * products);
}

TEST(FeatureSpectrum, ReleasedKnowsOnlyHowManyRowsItHad) {
  FeatureSpectrum spectrum(5, {}, 1);
  spectrum.update(noise({20, 5}, 0));
  spectrum.release();
  EXPECT_EQ(spectrum.rows(), 20);
  EXPECT_EQ(error_of([&] { spectrum.values(); }), "FeatureSpectrum: no rows were shown");
  EXPECT_EQ(error_of([&] { spectrum.merge(FeatureSpectrum(5, {}, 1)); }),
            "FeatureSpectrum: can be merged only as long as it holds its rows");
}

TEST(FeatureSpectrum, RejectsRowsThatAreNotFiniteOrOfAnotherLength) {
  for (const int64_t dims : {10, 3000}) {
    FeatureSpectrum spectrum(dims, {.sketch = 100, .anchors = 10}, 1);
    EXPECT_EQ(error_of([&] { spectrum.values(); }), "FeatureSpectrum: no rows were shown");
    auto rows = torch::zeros({2, dims});
    rows[1][3] = NAN;
    EXPECT_NE(error_of([&] { spectrum.update(rows); }).find("must be finite"), std::string::npos);
    EXPECT_NE(error_of([&] {
                spectrum.update(torch::zeros({2, 9}));
              }).find("got [2, 9]"),
              std::string::npos);
  }
}

}  // namespace kelvin::feature_spectrum_test
