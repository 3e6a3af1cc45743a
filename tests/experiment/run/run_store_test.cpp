#include "kelvin/experiment/run/run_store.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/types.h>

#include <limits>

#include "kelvin/core/files.h"
#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"
#include "tests/support/tensors.h"

namespace kelvin::run_store_test {

namespace fs = std::filesystem;

class RunStore : public testing::Test {
 protected:
  RunStore() { write_fake_run(run_, 1, 0, 90); }

  // Why it cannot be stored in, without the path of the run.
  std::string refusal() const {
    const auto message = error_of([&] { lock_to_store(run_); });
    EXPECT_TRUE(message.starts_with(run_.string())) << message;
    EXPECT_FALSE(fs::exists(run_ / "lock"));
    return message.substr(run_.string().size());
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(RunStore, AddsToWhatTheRunHolds) {
  const auto before = load_run(run_).readings.size();
  {
    const auto lock = lock_to_store(run_);
    EXPECT_TRUE(is_locked(run_));
    store_in_run(run_, {{.name = "a", .value = 1}}, {{"curve", torch::ones({2})}},
                 {{.detector = "msp", .ood = "x", .id_scores = {1}, .ood_scores = {2}}});
  }
  const auto after = load_run(run_);
  EXPECT_EQ(after.readings.size(), before + 1);
  EXPECT_EQ(after.scores.size(), 1U);
  EXPECT_TRUE(read_npz(run_ / "curves.npz").contains("curve"));
}

TEST_F(RunStore, SaysBeforehandWhatCannotBeRead) {
  constexpr auto kEnd = "; --no-store leaves the run as it is";
  write_file_atomically(run_ / "curves.npz", "damaged");
  EXPECT_TRUE(refusal().starts_with("/curves.npz: "));
  EXPECT_TRUE(refusal().ends_with(kEnd));
  fs::remove(run_ / "curves.npz");
  write_file_atomically(run_ / "scores", "a file");
  EXPECT_EQ(refusal(), std::string("/scores: is a file, must be a folder") + kEnd);
  fs::remove(run_ / "scores");
  write_file_atomically(run_ / "definitions.json", "[]");
  EXPECT_EQ(refusal(), std::string("/definitions.json: not a JSON object") + kEnd);
}

TEST_F(RunStore, SaysBeforehandThatTheRunCannotBeLocked) {
  {
    const auto lock = RunLock::take(run_);
    const auto message = error_of([&] { lock_to_store(run_); });
    EXPECT_NE(message.find("is at work in it; --no-store"), std::string::npos) << message;
  }
  fs::create_directories(run_ / "lock");
  const auto message = error_of([&] { lock_to_store(run_); });
  EXPECT_NE(message.find("cannot be made: Is a directory; --no-store"), std::string::npos)
      << message;
}

TEST(CurvesFile, KeepsWhatItHeldAndReplacesWhatIsNew) {
  const TemporaryFolder folder;
  const std::filesystem::path npz = folder / "curves.npz";
  add_curves(npz, {});
  EXPECT_FALSE(std::filesystem::exists(npz));
  add_curves(npz, {{"steps", doubles({1, 2})}, {"spectrum/a", doubles({3})}});
  add_curves(npz, {{"spectrum/a", doubles({4, 5})}});
  const auto arrays = read_npz(npz);
  ASSERT_EQ(arrays.size(), 2U);
  expect_close(tensor_of(arrays.at("steps")), doubles({1, 2}), 0);
  expect_close(tensor_of(arrays.at("spectrum/a")), doubles({4, 5}), 0);
}

TEST(TensorArrays, GoThereAndBack) {
  for (const auto type :
       {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16, torch::kInt64,
        torch::kInt32, torch::kInt16, torch::kInt8, torch::kUInt8, torch::kBool}) {
    const auto tensor = torch::arange(6).view({2, 3}).to(type);
    const auto array = array_of(tensor);
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    const auto back = tensor_of(array);
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(back.equal(tensor));
  }
}

TEST(TensorArrays, HaveElementsInOrderWhateverTheStrides) {
  const auto tensor = torch::arange(6, torch::kFloat32).view({2, 3}).t();
  EXPECT_TRUE(tensor_of(array_of(tensor)).equal(tensor));
  EXPECT_EQ(array_of(tensor).shape, (std::vector<int64_t>{3, 2}));
}

TEST(TensorArrays, OfAScalarHasNoShape) { EXPECT_TRUE(array_of(torch::tensor(2.5)).shape.empty()); }

TEST(TensorArrays, RejectsTypesThatAnNpzOfOursCannotHold) {
  EXPECT_EQ(error_of([] { array_of(torch::zeros({2}, torch::kComplexFloat)); }),
            "array_of: cannot store tensors of type ComplexFloat");
  EXPECT_EQ(error_of([] { tensor_of({.dtype = "U4", .shape = {}, .bytes = "abcd"}); }),
            "tensor_of: there are no tensors of type 'U4'");
}

TEST(TensorArrays, WidenNumbersWithoutASignExactly) {
  const auto two = tensor_of({.dtype = "u2", .shape = {2, 1}, .bytes = "\xff\xff\x01\x80"});
  EXPECT_TRUE(two.equal(torch::tensor({65535, 32769}, torch::kInt32).view({2, 1})));
  const auto four = tensor_of({.dtype = "u4", .shape = {1}, .bytes = "\xff\xff\xff\xff"});
  EXPECT_TRUE(four.equal(torch::tensor({int64_t{4294967295}})));
  const std::string ones(7, '\xff');
  const auto eight = tensor_of({.dtype = "u8", .shape = {1}, .bytes = ones + "\x7f"});
  EXPECT_TRUE(eight.equal(torch::tensor({std::numeric_limits<int64_t>::max()})));
  EXPECT_EQ(
      error_of([&] { tensor_of({.dtype = "u8", .shape = {1}, .bytes = ones + "\xff"}, "a: 'x'"); }),
      "a: 'x': holds 18446744073709551615, which must be below 2^63");
}

}  // namespace kelvin::run_store_test
