#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::layer_spectrum_test {

Record layers_record(const std::vector<std::pair<std::string, torch::Tensor>>& outputs) {
  const auto samples = outputs.front().second.size(0);
  auto record = record_of(torch::zeros({samples, 3}), torch::zeros({samples}, torch::kInt64));
  for (const auto& [name, output] : outputs) {
    LayerRecord layer;
    layer.name = name;
    layer.output = output;
    record.layers.push_back(layer);
  }
  return record;
}

Readings of_layer(const Readings& readings, const std::string& layer) {
  Readings found;
  for (const auto& reading : readings) {
    if (reading.layer == layer) found.push_back(reading);
  }
  return found;
}

double value_of(const Readings& readings, const std::string& layer, const std::string& name,
                const Definition& definition = Definition::object()) {
  return reading_of(of_layer(readings, layer), name, definition).value;
}

// 50 directions of falling weight in so many features.
torch::Tensor falling_rows(int64_t samples, int64_t features) {
  const auto weights = torch::logspace(0, -3, 50, 10, torch::kFloat64);
  return (noise({samples, 50}, 1) * weights).matmul(noise({50, features}, 2)).to(torch::kFloat32);
}

TEST(LayerSpectrum, OfKnownVariancesHasKnownRanks) {
  // Centred columns with variances 1, 1e-2, 1e-4 and 0.
  const auto signs = torch::tensor({{1.0, 1.0, 1.0, 0.0},
                                    {1.0, -1.0, -1.0, 0.0},
                                    {-1.0, 1.0, -1.0, 0.0},
                                    {-1.0, -1.0, 1.0, 0.0}},
                                   torch::kFloat64);
  const auto rows = signs * doubles({1, 0.1, 0.01, 1}) + doubles({5, -7, 9, 11});
  const auto readings = measured("layer_spectrum", {layers_record({{"a", rows}})});
  EXPECT_EQ(value_of(readings, "a", "covariance_rank", {{"gamma", 1e-3}}), 2);
  EXPECT_EQ(value_of(readings, "a", "covariance_rank", {{"gamma", 1e-2}}), 1);
  EXPECT_EQ(value_of(readings, "a", "numerical_rank"), 3);
  EXPECT_NEAR(value_of(readings, "a", "stable_rank"), 1.0101, 1e-9);
  EXPECT_EQ(reading_of(readings, "covariance_rank", {{"gamma", 1e-3}}).definition["upper_bound"],
            3);
  const auto values = readings_of(readings, "singular_value");
  ASSERT_EQ(values.size(), 3U);
  EXPECT_NEAR(values[0].value, 2, 1e-12);
  EXPECT_NEAR(values[2].value, 0.02, 1e-12);
}

TEST(LayerSpectrum, IsThatOfNumPyForMapsTokensAndVectors) {
  const auto maps = noise({60, 3, 4, 5}, 1).to(torch::kFloat32);
  const auto tokens = noise({60, 6, 4}, 2).to(torch::kFloat32);
  const auto vectors = noise({60, 7}, 3).to(torch::kFloat32);
  const auto record = layers_record({{"maps", maps}, {"tokens", tokens}, {"vectors", vectors}});
  const auto readings = measured("layer_spectrum", {record});
  const auto expected = oracle(R"(
for name in ("maps", "tokens", "vectors"):
    rows = x[name].reshape(len(x[name]), -1).astype("f8")
    values = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    eigenvalues = np.linalg.eigvalsh(np.atleast_2d(np.cov(rows.T)))[::-1]
    share = values / values.sum()
    share = share[share > 0]
    smoothed = values / values.sum() + 1e-7
    out[name] = np.array([
        (eigenvalues > 1e-2 * eigenvalues[0]).sum(), (values > 1e-3 * values[0]).sum(),
        np.exp(-(share * np.log(share)).sum()),
        np.exp(-(smoothed * np.log(smoothed)).sum()),
        (values**2).sum() / values[0]**2, eigenvalues.sum()**2 / (eigenvalues**2).sum(),
        values[0], values[4]])
)",
                               {{"maps", maps}, {"tokens", tokens}, {"vectors", vectors}});
  for (const auto& [layer, wanted] : expected) {
    const auto own = of_layer(readings, layer);
    EXPECT_EQ(value_of(readings, layer, "covariance_rank", {{"gamma", 1e-2}}),
              wanted[0].item<double>());
    EXPECT_EQ(value_of(readings, layer, "numerical_rank"), wanted[1].item<double>());
    int64_t i = 2;
    for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
      const double value = wanted[i++].item<double>();
      EXPECT_NEAR(value_of(readings, layer, name), value, 1e-6 * value) << layer << name;
    }
    const auto values = readings_of(own, "singular_value");
    EXPECT_NEAR(values[0].value / wanted[6].item<double>(), 1, 1e-6);
    EXPECT_NEAR(values[4].value / wanted[7].item<double>(), 1, 1e-6);
  }
}

TEST(LayerSpectrum, DoesNotDependOnRotationScaleOrOrder) {
  const auto rows = falling_rows(80, 60).to(torch::kFloat64);
  const auto rotation = std::get<0>(torch::linalg_qr(noise({60, 60}, 9)));
  const auto readings =
      measured("layer_spectrum", {layers_record({{"plain", rows},
                                                 {"rotated", rows.matmul(rotation)},
                                                 {"scaled", rows * 1e-5},
                                                 {"shuffled", rows.flip(0)}})});
  for (const char* name : {"effective_rank", "stable_rank", "participation_ratio"}) {
    const double plain = value_of(readings, "plain", name);
    for (const char* layer : {"rotated", "scaled", "shuffled"}) {
      EXPECT_NEAR(value_of(readings, layer, name), plain, 1e-6 * plain);
    }
  }
}

TEST(LayerSpectrum, OfAWideLayerIsSketchedAndSaysHowFarItCanBeOff) {
  const auto rows = falling_rows(600, 6000);
  const auto record = layers_record({{"wide", rows}});
  const auto readings = measured("layer_spectrum", {record}, {{"sketch", 512}, {"anchors", 64}});
  const auto exact = measured("layer_spectrum", {record}, {{"protocol", "exact"}});
  const auto rank = reading_of(readings, "covariance_rank", {{"gamma", 1e-3}});
  const double wanted = value_of(exact, "wide", "covariance_rank", {{"gamma", 1e-3}});
  EXPECT_EQ(rank.definition["sketch"], 512);
  EXPECT_EQ(rank.definition["anchors"], 49);  // the last direction is below rounding
  EXPECT_EQ(rank.definition["is_reliable"], true);
  EXPECT_EQ(rank.definition["upper_bound"], 599);
  const auto bounds = rank.definition["rank_bounds"];
  EXPECT_LE(bounds[0].get<double>(), wanted);
  EXPECT_GE(bounds[1].get<double>(), wanted);
  EXPECT_EQ(rank.value, wanted);
  EXPECT_FALSE(reading_of(exact, "numerical_rank").definition.contains("sketch"));
  EXPECT_TRUE(readings_of(readings, "numerical_rank").empty());
}

TEST(LayerSpectrum, OfARankThatFillsTheSketchIsNotReliableUnlessItIsEnlarged) {
  const auto record = layers_record({{"full", noise({300, 1000}, 1).to(torch::kFloat32)}});
  const Values small = {{"sketch", 64}, {"anchors", 8}};
  const auto rank =
      reading_of(measured("layer_spectrum", {record}, small), "covariance_rank", {{"gamma", 1e-3}});
  EXPECT_EQ(rank.value, 64);
  EXPECT_EQ(rank.definition["is_reliable"], false);
  EXPECT_EQ(rank.definition["rank_bounds"][1], 299);
  auto enlarging = small;
  enlarging["enlarge"] = true;
  const auto exact = reading_of(measured("layer_spectrum", {record}, enlarging), "covariance_rank",
                                {{"gamma", 1e-3}});
  EXPECT_EQ(exact.value, 299);
  EXPECT_FALSE(exact.definition.contains("sketch"));
}

// Hashing piles the tail up: its many directions come out fewer and larger.
TEST(LayerSpectrum, OfALongFaintTailIsNotReliableAndItsBoundsHold) {
  const auto weights = torch::cat({torch::ones({10}), torch::full({1990}, 0.02)});
  const auto rows = (noise({1500, 2000}, 3) * weights).to(torch::kFloat32);
  const auto record = layers_record({{"tailed", rows}});
  const auto sketch =
      reading_of(measured("layer_spectrum", {record}, {{"sketch", 256}, {"anchors", 32}}),
                 "covariance_rank", {{"gamma", 1e-3}});
  const auto exact = reading_of(measured("layer_spectrum", {record}, {{"protocol", "exact"}}),
                                "covariance_rank", {{"gamma", 1e-3}});
  EXPECT_NE(sketch.value, exact.value);
  EXPECT_EQ(sketch.definition["is_reliable"], false);
  EXPECT_LE(sketch.definition["rank_bounds"][0].get<double>(), exact.value);
  EXPECT_GE(sketch.definition["rank_bounds"][1].get<double>(), exact.value);
}

TEST(LayerSpectrum, HoldsAsMuchForTenTimesTheSamples) {
  const auto bytes_after = [](int64_t samples) {
    const auto measure = make_measure("layer_spectrum", {{"sketch", 64}, {"anchors", 8}});
    show(*measure, {layers_record({{"a", noise({samples, 500}, 1).to(torch::kFloat32)},
                                   {"b", noise({samples, 20}, 2).to(torch::kFloat32)}})});
    int64_t bytes = 0;
    for (const auto& [name, tensor] : measure->state()) bytes += int64_t(tensor.nbytes());
    return bytes;
  };
  EXPECT_EQ(bytes_after(200), bytes_after(2000));
}

TEST(LayerSpectrum, TakesMorePassesWhenTheMemoryIsShort) {
  const auto record = layers_record(
      {{"a", noise({50, 900}, 1)}, {"b", noise({50, 900}, 2)}, {"c", noise({50, 900}, 3)}});
  const Values exact = {{"protocol", "exact"}};
  const MeasureContext roomy{.test_samples = 50};
  const auto expected = measured("layer_spectrum", {record}, exact, roomy);
  const MeasureContext short_of{.memory = 600'000, .test_samples = 50};
  const auto measure = make_measure("layer_spectrum", exact, short_of);
  int64_t passes = 0;
  do {
    measure->update(record);
    ++passes;
  } while (measure->wants_another_pass());
  EXPECT_EQ(passes, 3);
  // Rounding differs, because not the same layers share the cores.
  expect_same(measure->compute(), expected, 1e-12);
  EXPECT_LE(measure->memory(record, 50), 600'000);
  const MeasureContext too_little{.memory = 100'000, .test_samples = 50};
  EXPECT_EQ(error_of([&] { make_measure("layer_spectrum", exact, too_little)->update(record); }),
            "layer_spectrum: layer 'a' with 900 features needs 410 KiB for protocol exact, "
            "measure.memory allows 97.7 KiB");
}

// As many passes as it takes: also where the covariances are what does not fit.
TEST(LayerSpectrum, GivesTheSameInAnyMemory) {
  std::vector<std::pair<std::string, torch::Tensor>> outputs;
  for (int64_t i = 0; i < 5; ++i)
    outputs.emplace_back("l" + std::to_string(i), noise({300, 64}, i));
  const auto record = layers_record(outputs);
  const Values tunnel = {{"protocol", "tunnel"}};
  const auto expected = measured("layer_spectrum", {record}, tunnel, {.test_samples = 300});
  int64_t most_passes = 0;
  for (const int64_t memory : {4'000'000, 6'000'000, 20'000'000}) {
    const auto measure =
        make_measure("layer_spectrum", tunnel, {.memory = memory, .test_samples = 300});
    int64_t passes = 0;
    do {
      measure->update(record);
      ++passes;
    } while (measure->wants_another_pass());
    most_passes = std::max(most_passes, passes);
    EXPECT_LE(measure->memory(record, 300), memory);
    expect_same(measure->compute(), expected, 1e-12);
  }
  EXPECT_GT(most_passes, 1);
}

// 8000 features chosen of 16384: each covariance has half a gigabyte, and four are needed to find
// its eigenvalues.
TEST(LayerSpectrum, OfAResNet20ByTheTunnelProtocolFitsTheDefaultMemory) {
  std::vector<std::pair<std::string, torch::Tensor>> outputs;
  for (int64_t i = 0; i < 19; ++i) {
    outputs.emplace_back("conv" + std::to_string(i), torch::zeros({1, 16384 >> ((i - 1) / 6)}));
  }
  const auto record = layers_record(outputs);
  const Values tunnel = {{"protocol", "tunnel"}};
  const int64_t most = int64_t{4} << 30;
  for (const int64_t memory : {most, most * 5 / 8}) {
    const auto measure =
        make_measure("layer_spectrum", tunnel, {.memory = memory, .test_samples = 10'000});
    measure->update(record);
    EXPECT_LE(measure->memory(record, 10'000), memory);
    EXPECT_TRUE(measure->wants_another_pass());
  }
}

// Otherwise its default would cost a second forward pass.
TEST(LayerSpectrum, OfAResNet18FitsIntoOnePass) {
  std::vector<std::pair<std::string, torch::Tensor>> outputs;
  for (int64_t i = 0; i < 17; ++i) {
    const int64_t features = i < 5 ? 65536 : 32768 >> ((i - 5) / 4);
    outputs.emplace_back("conv" + std::to_string(i), torch::zeros({1, features}));
  }
  const auto record = layers_record(outputs);
  for (const int64_t samples : {100, 1000, 2000, 3000, 10'000, 50'000}) {
    const auto measure = make_measure("layer_spectrum", {}, {.test_samples = samples});
    measure->update(record);
    EXPECT_FALSE(measure->wants_another_pass()) << samples;
    EXPECT_LT(measure->memory(record, samples), int64_t{3} << 30) << samples;
  }
}

TEST(LayerSpectrum, OfALayerOfZerosHasRankZero) {
  const auto readings =
      measured("layer_spectrum", {layers_record({{"dead", torch::zeros({10, 4})}})});
  EXPECT_EQ(value_of(readings, "dead", "covariance_rank", {{"gamma", 1e-3}}), 0);
  EXPECT_EQ(value_of(readings, "dead", "numerical_rank"), 0);
  EXPECT_TRUE(readings_of(readings, "effective_rank").empty());
}

TEST(LayerSpectrum, HasWholeSpectraAmongItsCurves) {
  const auto measure = make_measure("layer_spectrum", {{"top", 2}});
  const auto rows = noise({40, 6}, 1);
  show(*measure, {layers_record({{"a", rows}})});
  const auto curves = measure->curves();
  expect_close(curves.at("spectrum/a"), torch::linalg_svdvals(rows - rows.mean(0)), 1e-9);
  EXPECT_EQ(curves.at("rank_curve/a").size(0), curves.at("rank_curve_gamma").size(0));
  EXPECT_EQ(curves.at("rank_curve/a")[0].item<double>(), 6);
  EXPECT_EQ(readings_of(measure->compute(), "singular_value").size(), 2U);
}

TEST(LayerSpectrum, RejectsWhatHasNoSpectrum) {
  auto broken = torch::ones({4, 3});
  broken[2][1] = NAN;
  EXPECT_EQ(error_of([&] {
              measured("layer_spectrum", {layers_record({{"a", broken}})});
            }),
            "layer_spectrum: layer 'a' must be finite, has a NaN or an infinity");
  auto bare = layers_record({{"a", torch::ones({4, 3})}});
  bare.layers.clear();
  EXPECT_EQ(error_of([&] { measured("layer_spectrum", {bare}); }),
            "layer_spectrum: the record must have layers, has none");
  const auto first = layers_record({{"a", torch::ones({4, 3})}});
  const auto second = layers_record({{"a", torch::ones({4, 5})}});
  EXPECT_EQ(error_of([&] {
              measured("layer_spectrum", {first, second});
            }),
            "layer_spectrum: layer 'a' must have 3 features, has 5");
}

TEST(LayerSpectrum, RejectsSettingsThatMakeNoSense) {
  const auto message = [](const Values& values) {
    return error_of([&] { make_measure("layer_spectrum", values); });
  };
  EXPECT_EQ(message({{"gamma", 2.0}}), "measure.layer_spectrum.gamma: must be in (0, 1), got 2");
  EXPECT_EQ(message({{"protocol", "tunel"}}),
            "measure.layer_spectrum.protocol: must be sketch, tunnel or exact, got 'tunel'");
  EXPECT_EQ(message({{"sketch", 1}}), "measure.layer_spectrum.sketch: must be at least 2, got 1");
  EXPECT_EQ(message({{"sketch", 10}, {"anchors", 10}}),
            "measure.layer_spectrum.anchors: must be from 0 to below sketch, 10, got 10");
  EXPECT_EQ(message({{"top", -1}}), "measure.layer_spectrum.top: must not be below 0, got -1");
}

}  // namespace kelvin::layer_spectrum_test
