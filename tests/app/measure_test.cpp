#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "kelvin/core/text.h"
#include "kelvin/report/tables/text_table.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin::measure_test {

using Words = std::vector<std::string>;

// With features, classifier and two layers; logits of full rank.
void write_dump(const std::string& path) {
  python_output(
      "import sys, numpy as np\n"
      "r = np.random.default_rng(0)\n"
      "y = np.arange(120) % 4\n"
      "f = r.normal(size=(120, 8)) + 3 * r.normal(size=(4, 8))[y]\n"
      "w, b = r.normal(size=(4, 8)), r.normal(size=4)\n"
      "np.savez(sys.argv[1], features=f, weight=w, bias=b, logits=f @ w.T + b, labels=y,\n"
      "         **{'layer/first': r.normal(size=(120, 30)), 'layer/second': f})\n",
      {path});
}

CommandResult measure(const std::string& dump, const Words& words) {
  Words command = {"measure", dump, "-q"};
  command.insert(command.end(), words.begin(), words.end());
  return run_tool(command);
}

TEST(MeasureVerb, PrintsOneRowPerQuantity) {
  const TemporaryFolder folder;
  write_dump(folder / "x.npz");
  const auto result = measure(folder / "x.npz", {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("quantity ")) << result.out;
  std::multiset<std::string> names;
  for (const auto& line : split(result.out, '\n')) {
    EXPECT_LE(shown_width(line), 80U) << line;
    names.insert(line.substr(0, line.find(' ')));
  }
  EXPECT_EQ(names.count("solution_rank"), 1U) << result.out;
  EXPECT_EQ(names.count("accuracy"), 1U) << result.out;
  EXPECT_LT(std::count(result.out.begin(), result.out.end(), '\n'), 100) << result.out;
  EXPECT_NE(result.out.find("--definitions shows what each number means"), std::string::npos);
  // Logits of four classes at full rank: 3 is all there is.
  EXPECT_NE(result.out.find("3†"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("† At its upper bound"), std::string::npos) << result.out;
}

TEST(MeasureVerb, ShowsDefinitionsAndVariantsIfAsked) {
  const TemporaryFolder folder;
  write_dump(folder / "x.npz");
  const auto result = measure(folder / "x.npz", {"--definitions"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  size_t ranks = 0;
  for (const auto& line : split(result.out, '\n')) {
    EXPECT_LE(shown_width(line), 80U) << line;
    ranks += line.starts_with("solution_rank ") ? 1 : 0;
  }
  EXPECT_GE(ranks, 6U) << result.out;
  EXPECT_NE(result.out.find("gamma 0.001"), std::string::npos) << result.out;
}

TEST(MeasureVerb, HasEverythingForPrograms) {
  const TemporaryFolder folder;
  write_dump(folder / "x.npz");
  const auto json = nlohmann::json::parse(measure(folder / "x.npz", {"-o", "json"}).out);
  size_t ranks = 0;
  for (const auto& reading : json.at("readings")) {
    ranks += reading.at("name") == "solution_rank" ? 1 : 0;
    EXPECT_TRUE(reading.at("definition").is_object());
  }
  EXPECT_GE(ranks, 6U);
  const auto csv = measure(folder / "x.npz", {"-o", "csv"}).out;
  const auto lines = static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n'));
  EXPECT_EQ(lines, json.at("readings").size() + 1);
}

TEST(MeasureVerb, HasOneRowPerLayer) {
  const TemporaryFolder folder;
  write_dump(folder / "x.npz");
  const auto result = measure(folder / "x.npz", {"--measures", "layer_spectrum"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\nfirst "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nsecond "), std::string::npos) << result.out;
  for (const auto& line : split(result.out, '\n')) EXPECT_LE(shown_width(line), 80U) << line;
}

// Probes of so wide layers invert matrices for most of a minute, and ask nothing meanwhile.
TEST(MeasureVerb, EndsSoonAfterAnInterruptWithinASolve) {
  const TemporaryFolder folder;
  const auto run = folder / "run";
  const auto trained =
      run_tool({"train", "--model", "resnet10", "--dataset", "glyphs10", "--epochs", "1", "-b",
                "100", "--output", run, "model.width=0.25", "data.train_samples=100",
                "data.test_samples=50", "measure.names=[]", "measure.epoch_samples=50"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto before = whole_file(run + "/readings.jsonl");
  StartedCommand command(tool_words({"measure", run, "-q", "--measures", "linear_probe",
                                     "--threads", "1", "measure.linear_probe.pool=16"}));
  std::this_thread::sleep_for(std::chrono::seconds(5));
  command.send(SIGTERM);
  const auto result = command.wait();
  EXPECT_EQ(result.exit_code, 143) << result.err;
  EXPECT_EQ(result.err, "kelvin: stopped while computing\n");
  EXPECT_LT(result.seconds, 12);
  EXPECT_EQ(whole_file(run + "/readings.jsonl"), before);
}

}  // namespace kelvin::measure_test
