#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "kelvin/core/text.h"
#include "kelvin/report/tables/text_table.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin::ood_test {

std::vector<std::string> tiny_training(const std::string& output) {
  return {
      "train",         "--model",        "mlp",      "--dataset", "glyphs10",   "--train-samples",
      "128",           "--test-samples", "64",       "--epochs",  "2",          "-q",
      "model.width=8", "model.depth=2",  "--output", output,      "--measures", "accuracy"};
}

void write_dumps(const TemporaryFolder& folder) {
  python_output(
      "import sys, numpy as np\n"
      "r = np.random.default_rng(0)\n"
      "w, b, m = r.normal(size=(4, 6)), r.normal(size=4), 3 * r.normal(size=(4, 6))\n"
      "for i, (name, n, far) in enumerate([('a', 80, 0), ('b', 40, 0), ('c', 30, 4)]):\n"
      "    y = np.arange(n) % 4\n"
      "    f = np.abs(r.normal(size=(n, 6)) + m[y] + far * r.normal(size=6))\n"
      "    np.savez(f'{sys.argv[1]}/{name}.npz', features=f, logits=f @ w.T + b, labels=y,\n"
      "             weight=w, bias=b)\n",
      {folder.path()});
}

TEST(OodVerb, RunsAllDetectorsOnARunAndKeepsTheScores) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const auto result = run_tool({"ood", run, "--ood", "textures10", "-q", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, std::set<std::string>> detectors;  // by name of the reading
  const auto printed = nlohmann::json::parse(result.out);
  for (const auto& reading : printed.at("readings")) {
    EXPECT_EQ(reading.at("ood"), "textures10");
    detectors[reading.at("name")].insert(reading.value("detector", ""));
  }
  const auto list = nlohmann::json::parse(run_tool({"list", "detectors", "-o", "json"}).out);
  EXPECT_GE(list.size(), 20U);
  for (const char* name : {"auroc", "aupr_in", "aupr_out", "fpr95_id", "fpr95_ood"}) {
    EXPECT_EQ(detectors[name].size(), list.size()) << name;
  }
  EXPECT_EQ(detectors["orthodev"], std::set<std::string>{""});
  for (const char* file : {"neco@textures10.csv", "knn@textures10.csv"}) {
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(run) / "scores" / file)) << file;
  }
}

TEST(OodVerb, PrintsATableWithTheConventionInEveryHeader) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const auto result = run_tool({"ood", "--id-train", folder / "a.npz", "--id-test",
                                folder / "b.npz", "--ood", "odd=" + std::string(folder / "c.npz"),
                                "--detectors", "msp,neco", "--output", folder / "scores", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"Against odd, in %", "AUPR (ID", "AUPR (OOD", "FPR95 (ID", "FPR95 (OOD",
                           "positive)", "neco", "msp", "orthodev"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
  EXPECT_EQ(result.out.find("detector", result.out.find("detector") + 1), std::string::npos)
      << "is one table\n"
      << result.out;
  for (const auto& line : split(result.out, '\n')) EXPECT_LE(shown_width(line), 80U) << line;
  EXPECT_TRUE(std::filesystem::exists(folder / "scores/msp@odd.csv"));
}

TEST(OodVerb, TakesTheNameOfAFileAndRepeatedFlagsAndSettings) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const std::vector<std::string> known = {"ood",
                                          "--id-train",
                                          folder / "a.npz",
                                          "--id-test",
                                          folder / "b.npz",
                                          "-q",
                                          "--detectors",
                                          "knn",
                                          "-o",
                                          "json"};
  const auto detected = [&](const std::vector<std::string>& words) {
    auto command = known;
    command.insert(command.end(), words.begin(), words.end());
    const auto result = run_tool(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::map<std::string, nlohmann::json> aurocs;  // by OOD dataset
    const auto printed = nlohmann::json::parse(result.out, nullptr, false);
    if (printed.is_discarded()) return aurocs;
    for (const auto& reading : printed.at("readings")) {
      if (reading.at("name") == "auroc") aurocs[reading.at("ood")] = reading;
    }
    return aurocs;
  };
  const std::string c = folder / "c.npz";
  const auto by_commas = detected({"--ood", c + ",other=" + c});
  const auto repeated = detected({"--ood", c, "--ood", "other=" + c});
  EXPECT_EQ(by_commas, repeated);
  EXPECT_TRUE(repeated.contains("c"));
  EXPECT_TRUE(repeated.contains("other"));
  const auto of_one = detected({"--ood", c, "detector.knn.neighbours=1"});
  EXPECT_EQ(of_one.at("c").at("definition").at("neighbours"), 1);
  EXPECT_EQ(of_one, detected({"detector.knn.neighbours=1", "--ood", c}));
}

TEST(OodVerb, RefusesInOneLine) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const std::string a = folder / "a.npz";
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{}, "needs a run or a file of weights, or dumps as --id-train and --id-test"},
      {{folder / "none"}, std::string(folder / "none") + ": no such run or file"},
      {{a, "--ood", "svhn"}, a + ": is one dump; give three"},
      {{"--id-train", a}, "--id-train and --id-test: both are needed"},
      {{"--id-train", a, "--id-test", a},
       "--ood: needs dumps of OOD samples, as x.npz or NAME=x.npz"},
      {{"--id-train", a, "--id-test", a, "--ood", "svhn"}, "svhn: no such file"},
      {{"--id-train", a, "--id-test", a, "--ood", "svhn="},
       "--ood: must be x.npz or NAME=x.npz beside dumps, got 'svhn='"},
      {{"--id-train", a, "--id-test", a, "--ood", "far=" + a},
       "--ood: 'far' is what the mean over the datasets of --far is called; give the data another "
       "name, as NAME=x.npz"},
      {{"--id-train", a, "--id-test", a, "--ood", a + "," + a},
       "--ood: 'a' is there twice; give one of them another name, as NAME=x.npz"},
      {{"--id-train", a, "--id-test", a, "--ood", "svhn=/no.npz"}, "/no.npz: no such file"},
      {{"--id-train", a, "--id-test", a, "--ood", "x=" + a, "--detectors", "nevo"},
       "no detector named 'nevo'; did you mean 'neco'?"},
      {{"--id-train", a, "--id-test", a, "--ood", "x=" + a, "--dataset", "cifar10"}, "data.name"},
  };
  for (const auto& [words, message] : refusals) {
    std::vector<std::string> command = {"ood", "-q"};
    command.insert(command.end(), words.begin(), words.end());
    const auto result = run_tool(command);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_TRUE(result.err.starts_with("kelvin ood: " + message)) << result.err;
  }
}

}  // namespace kelvin::ood_test
