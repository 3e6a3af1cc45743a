#include "kelvin/experiment/evaluate/dump.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/tensors.h"

namespace kelvin::dump_test {

class DumpFile : public testing::Test {
 protected:
  DumpFile() {
    set("logits", torch::tensor({{2.0, 0.0, 0.0}, {0.0, 4.0, 0.0}, {0.0, 0.0, 4.0}}));
    set("labels", torch::tensor({0, 1, 0}));
  }

  void set(const std::string& name, const torch::Tensor& tensor) {
    arrays_[name] = array_of(tensor);
  }

  Dump dump(const DumpOptions& options = {}) const {
    write_npz(path(), arrays_);
    return read_dump(path(), options);
  }

  // The message without the path it must open with.
  std::string rejected(const DumpOptions& options = {}) const {
    auto message = error_of([&] { dump(options); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  std::string path() const { return folder_ / "dump.npz"; }

  TemporaryFolder folder_;
  Arrays arrays_;
};

std::vector<std::string> layer_names(const Dump& dump) {
  std::vector<std::string> names;
  names.reserve(dump.record.layers.size());
  for (const auto& layer : dump.record.layers) names.push_back(layer.name);
  return names;
}

TEST_F(DumpFile, IsARecordOfTheTestSplit) {
  const auto [record, temperature, narrow] = dump();
  EXPECT_EQ(record.split, Split::test);
  EXPECT_FALSE(record.is_ood());
  EXPECT_EQ(record.classes, 3);
  EXPECT_EQ(record.logits.scalar_type(), torch::kFloat32);
  EXPECT_EQ(record.logits[1][1].item<double>(), 4);
  EXPECT_TRUE(record.labels.equal(labels_of({0, 1, 0})));
  EXPECT_FALSE(record.features.defined());
  EXPECT_FALSE(record.weight.defined());
  EXPECT_FALSE(record.bias.defined());
  EXPECT_TRUE(record.layers.empty());
  EXPECT_EQ(temperature, 1);
}

TEST_F(DumpFile, HasWhatElseIsInIt) {
  set("features", noise({3, 5}, 0));
  set("weight", noise({3, 5}, 1));
  set("bias", noise({3}, 2));
  set("temperature", torch::tensor(4.0F));
  const auto [record, temperature, narrow] = dump();
  expect_close(record.features, noise({3, 5}, 0), 0);
  expect_close(record.weight, noise({3, 5}, 1), 0);
  expect_close(record.bias, noise({3}, 2), 0);
  EXPECT_EQ(temperature, 4);
}

TEST_F(DumpFile, TakesATemperatureInAnArrayOfOne) {
  set("temperature", doubles({0.5}));
  EXPECT_EQ(dump().temperature, 0.5);
}

TEST_F(DumpFile, TakesLabelsOfOtherWholeTypes) {
  for (const auto type : {torch::kInt32, torch::kUInt8}) {
    set("labels", torch::tensor({0, 1, 0}).to(type));
    EXPECT_TRUE(dump().record.labels.equal(labels_of({0, 1, 0})));
  }
}

TEST_F(DumpFile, LeavesOodLabelsUnread) {
  set("labels", torch::tensor({0, 77, -1}));
  EXPECT_FALSE(dump({.needs_labels = false}).record.labels.defined());
  EXPECT_EQ(rejected(), "'labels' must be in [0, 3)");
  arrays_.erase("labels");
  EXPECT_EQ(dump({.needs_labels = false}).record.logits.size(0), 3);
}

TEST_F(DumpFile, HasLayersInTheOrderOfTheirNumbersIfTheyAreAskedFor) {
  set("layer/block10", noise({3, 2, 2, 2}, 0));
  set("layer/block2", noise({3, 5}, 1));
  EXPECT_TRUE(layer_names(dump()).empty());
  const auto asked = dump({.with_layers = true});
  EXPECT_EQ(layer_names(asked), (std::vector<std::string>{"block2", "block10"}));
  expect_close(asked.record.layers[1].output, noise({3, 2, 2, 2}, 0), 0);
}

TEST_F(DumpFile, HasFeaturesAsItsOnlyLayerWithoutOthers) {
  EXPECT_TRUE(layer_names(dump({.with_layers = true})).empty());
  set("features", noise({3, 5}, 0));
  EXPECT_EQ(layer_names(dump({.with_layers = true})), std::vector<std::string>{"features"});
}

TEST_F(DumpFile, DoesNotLookAtLayersThatNobodyAskedFor) {
  set("layer/a", torch::full({4, 5}, std::nan("")));
  set("something", torch::zeros({7}));
  EXPECT_EQ(dump().record.classes, 3);
  EXPECT_EQ(rejected({.with_layers = true}), "'layer/a' must be [3, ...], got [4, 5]");
}

TEST_F(DumpFile, RejectsLayersThatDoNotFit) {
  set("layer/a", torch::zeros({3}));
  EXPECT_EQ(rejected({.with_layers = true}), "'layer/a' must be [3, ...], got [3]");
  set("layer/a", torch::zeros({3, 0}));
  EXPECT_EQ(rejected({.with_layers = true}), "'layer/a' must be [3, ...], got [3, 0]");
  set("layer/a", torch::zeros({3, 2}, torch::kInt64));
  EXPECT_EQ(rejected({.with_layers = true}),
            "'layer/a' must be floating with 2 dimensions, got [3, 2]");
  set("layer/a", torch::full({3, 2}, std::nan("")));
  EXPECT_EQ(rejected({.with_layers = true}), "'layer/a' must be finite, has a NaN or an infinity");
}

TEST_F(DumpFile, ReadsWhatNumPyWrites) {
  python_output(
      "import numpy as np, sys\n"
      "np.savez_compressed(sys.argv[1], logits=np.diag([2., 4., 4.]).astype('f4'),"
      " labels=np.array([0, 1, 0]), temperature=2.0)",
      {path()});
  const auto [record, temperature, narrow] = read_dump(path());
  EXPECT_EQ(record.logits[2][2].item<double>(), 4);
  EXPECT_EQ(temperature, 2);
}

TEST_F(DumpFile, RejectsAMissingArray) {
  arrays_.erase("labels");
  EXPECT_EQ(rejected(), "has no array 'labels'");
  arrays_.erase("logits");
  set("labels", torch::tensor({0}));
  EXPECT_EQ(rejected(), "has no array 'logits'");
}

TEST_F(DumpFile, RejectsLogitsThatAreNoMatrix) {
  set("logits", torch::zeros({3}));
  EXPECT_EQ(rejected(), "'logits' must be floating with 2 dimensions, got [3]");
  set("logits", torch::zeros({3, 3}, torch::kInt64));
  EXPECT_EQ(rejected(), "'logits' must be floating with 2 dimensions, got [3, 3]");
}

TEST_F(DumpFile, RejectsOneClassOrNoSamples) {
  set("logits", torch::zeros({3, 1}));
  EXPECT_EQ(rejected(), "'logits' must have at least one sample and two classes, got [3, 1]");
  set("logits", torch::zeros({0, 3}));
  EXPECT_EQ(rejected(), "'logits' must have at least one sample and two classes, got [0, 3]");
}

TEST_F(DumpFile, RejectsNumbersThatAreNotFinite) {
  set("logits", torch::full({3, 3}, std::nan("")));
  EXPECT_EQ(rejected(), "'logits' must be finite, has a NaN or an infinity");
  set("logits", torch::full({3, 3}, HUGE_VAL));
  EXPECT_EQ(rejected(), "'logits' must be finite, has a NaN or an infinity");
  set("logits", torch::eye(3));
  set("features", torch::full({3, 2}, std::nan("")));
  EXPECT_EQ(rejected(), "'features' must be finite, has a NaN or an infinity");
}

TEST_F(DumpFile, RejectsLabelsThatDoNotFit) {
  set("labels", torch::tensor({0, 1}));
  EXPECT_EQ(rejected(), "'labels' must be 3 whole numbers, got [2]");
  set("labels", torch::tensor({0, 1, 0}).view({1, 3}));
  EXPECT_EQ(rejected(), "'labels' must be 3 whole numbers, got [1, 3]");
  set("labels", torch::zeros({3, 3}, torch::kInt64));
  EXPECT_EQ(rejected(), "'labels' must be 3 whole numbers, got [3, 3]");
  set("labels", torch::tensor({0.0, 1.5, 2.0}));
  EXPECT_EQ(rejected(), "'labels' must be whole numbers, one is 1.5");
  set("labels", torch::tensor({0.0, 1.0, std::nan("")}));
  EXPECT_EQ(rejected(), "'labels' must be whole numbers, one is nan");
  set("labels", torch::tensor({0.0, 1.0, 1e30}));
  EXPECT_EQ(rejected(), "'labels' must be whole numbers, one is 1e+30");
  set("labels", torch::tensor({0.0, 1.0, 3.0}));
  EXPECT_EQ(rejected(), "'labels' must be in [0, 3)");
  arrays_["labels"] = {.dtype = "u8", .shape = {3}, .bytes = std::string(24, '\xff')};
  EXPECT_EQ(rejected(), "'labels': holds 18446744073709551615, which must be below 2^63");
  set("labels", torch::tensor({0, 1, 3}));
  EXPECT_EQ(rejected(), "'labels' must be in [0, 3)");
  set("labels", torch::tensor({0, -1, 2}));
  EXPECT_EQ(rejected(), "'labels' must be in [0, 3)");
}

// A small file may unpack to gigabytes of them.  The checksum is what would be wrong afterwards.
TEST_F(DumpFile, RejectsLabelsAndTemperaturesThatDoNotFitBeforeTheyAreUnpacked) {
  for (const std::string name : {"labels", "temperature"}) {
    set(name, torch::zeros({1000}, torch::kInt64));
    write_npz(folder_ / "plain.npz", arrays_);
    python_output(R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as plain, zipfile.ZipFile(sys.argv[2], 'w', zipfile.ZIP_DEFLATED) as file:
    for name in plain.namelist():
        file.writestr(name, plain.read(name))
    file.getinfo(sys.argv[3] + '.npy').CRC ^= 1
)",
                  {folder_ / "plain.npz", path(), name});
    EXPECT_EQ(error_of([&] { read_dump(path()); }),
              path() + (name == "labels" ? ": 'labels' must be 3 whole numbers, got [1000]"
                                         : ": 'temperature' must be a scalar, got [1000]"));
    set("labels", torch::tensor({0, 1, 0}));
  }
}

TEST_F(DumpFile, RejectsAClassifierThatDoesNotFit) {
  set("features", torch::zeros({2, 5}));
  EXPECT_EQ(rejected(), "'features' must have 3 rows and at least one column, got [2, 5]");
  set("features", torch::zeros({3, 5}));
  set("weight", torch::zeros({4, 5}));
  EXPECT_EQ(rejected(), "'weight' must have 3 rows, got [4, 5]");
  set("weight", torch::zeros({3, 4}));
  EXPECT_EQ(rejected(), "'weight' must have as many columns as 'features', got [3, 4] and [3, 5]");
  set("weight", torch::zeros({3, 5}));
  set("bias", torch::zeros({2}));
  EXPECT_EQ(rejected(), "'bias' must have 3 entries, got [2]");
  set("bias", torch::zeros({3, 1}));
  EXPECT_EQ(rejected(), "'bias' must be floating with 1 dimensions, got [3, 1]");
}

TEST_F(DumpFile, RejectsATemperatureThatIsNoneOrSeveral) {
  set("temperature", torch::tensor({1.0, 2.0}));
  EXPECT_EQ(rejected(), "'temperature' must be a scalar, got [2]");
  set("temperature", torch::tensor(-1.0));
  EXPECT_EQ(rejected(), "temperature must be a finite number above 0, got -1");
}

TEST_F(DumpFile, RejectsAFileThatIsNotThere) {
  const auto message = error_of([&] { read_dump(folder_ / "none.npz"); });
  EXPECT_NE(message.find(folder_ / "none.npz"), std::string::npos) << message;
}

// Every type that NumPy has for labels, as a row and as a column, and every order of axes.
TEST_F(DumpFile, TakesLabelsAndLogitsAsPeopleHaveThem) {
  python_output(R"(
import sys, numpy as np
logits = np.array([[2, 0.5, 0], [0, 4, -1.25], [0, 0, 4]])
labels = np.array([0, 1, 0])
for t in ['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'b1', 'f2', 'f4', 'f8', '>i2', '>i8', '>u4', '>f4']:
    np.savez(f'{sys.argv[1]}/row-{t}.npz', logits=logits, labels=labels.astype(t))
    np.savez(f'{sys.argv[1]}/column-{t}.npz', logits=logits, labels=labels.astype(t)[:, None])
for t in ['f2', 'f4', 'f8', '>f2', '>f4', '>f8']:
    np.savez(f'{sys.argv[1]}/logits-{t}.npz', logits=logits.astype(t), labels=labels)
    np.savez(f'{sys.argv[1]}/fortran-{t}.npz', logits=np.asfortranarray(logits.astype(t)),
             labels=labels)
# What ml_dtypes.bfloat16 is on disk: the upper half of float32, as void of two bytes.
upper = np.ascontiguousarray(logits.astype('<f4').view('<u2')[:, 1::2])
np.savez(f'{sys.argv[1]}/logits-bfloat16.npz', logits=upper.view('V2'), labels=labels)
)",
                {folder_.path().string()});
  const auto logits =
      torch::tensor({{2., 0.5, 0.}, {0., 4., -1.25}, {0., 0., 4.}}, torch::kFloat64);
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const auto read = read_dump(entry.path());
    const auto name = entry.path().stem().string();
    EXPECT_TRUE(read.record.labels.equal(labels_of({0, 1, 0}))) << name;
    EXPECT_TRUE(read.record.logits.to(torch::kFloat64).equal(logits)) << name;
    EXPECT_GE(read.record.logits.element_size(), 4U) << name;
    const std::map<std::string, std::string> half = {{"logits", "float16"}};
    const std::map<std::string, std::string> brain = {{"logits", "bfloat16"}};
    const auto expected =
        name.ends_with("f2") && !name.starts_with("row") && !name.starts_with("column") ? half
        : name == "logits-bfloat16"                                                     ? brain
                                    : std::map<std::string, std::string>();
    EXPECT_EQ(read.narrow, expected) << name;
    ++files;
  }
  EXPECT_EQ(files, 16 * 2 + 6 * 2 + 1);
}

TEST_F(DumpFile, ReadsTheClassifierOnlyIfItIsAskedFor) {
  set("features", torch::zeros({7, 5}));
  EXPECT_FALSE(dump({.with_classifier = false}).record.features.defined());
  EXPECT_EQ(rejected(), "'features' must have 3 rows and at least one column, got [7, 5]");
}

}  // namespace kelvin::dump_test
