#include "kelvin/experiment/tasks/train_retrieval.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>

#include "kelvin/experiment/retrieval/retrieval_file.h"
#include "kelvin/ops/simplex_map.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::train_retrieval_test {

TrainRetrievalRequest small_request(const std::filesystem::path& output) {
  TrainRetrievalRequest request{.seeds = {0, 3}, .output = output};
  request.config.set("retrieval.width", 8);
  request.config.set("retrieval.steps", 4);
  request.config.set("retrieval.batch_size", 16);
  return request;
}

TEST(TrainRetrieval, WritesANetworkOfEachSeed) {
  const TemporaryFolder folder;
  const auto rows = train_retrieval(small_request(folder / "new/out"), {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at("seed"), 3);
  EXPECT_TRUE(rows[1].contains("loss"));
  const auto loaded = load_retrieval(folder / "new/out/softmax,seed=3.safetensors");
  EXPECT_EQ(loaded.settings.seed, 3);
}

TEST(TrainRetrieval, LeavesFinishedNetworksAlone) {
  const TemporaryFolder folder;
  train_retrieval(small_request(folder.path()), {});
  const auto rows = train_retrieval(small_request(folder.path()), {});
  EXPECT_FALSE(rows[0].contains("loss"));
  auto other = small_request(folder.path());
  other.config.set("retrieval.steps", 5);
  EXPECT_NE(error_of([&] {
              train_retrieval(other, {});
            }).find("was trained with other settings; choose another folder"),
            std::string::npos);
}

TEST(TrainRetrieval, IsTheSameForTheSameSeed) {
  const TemporaryFolder folder;
  train_retrieval(small_request(folder / "a"), {});
  train_retrieval(small_request(folder / "b"), {});
  const auto bytes = [&](const std::string& name) {
    return whole_file(folder / (name + "/softmax,seed=0.safetensors"));
  };
  EXPECT_EQ(bytes("a"), bytes("b"));
}

TEST(TrainRetrieval, TrainsWithEveryMap) {
  const TemporaryFolder folder;
  for (const auto& [name, entry] : simplex_maps().entries()) {
    auto request = small_request(folder.path());
    request.seeds = {0};
    request.config.set("retrieval.attention", name);
    const auto rows = train_retrieval(request, {});
    EXPECT_TRUE(std::isfinite(rows[0].at("loss").get<double>())) << name;
  }
}

TEST(TrainRetrieval, StopsWhenItIsAskedTo) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] {
              train_retrieval(small_request(folder.path()), {.should_stop = [] { return true; }});
            }),
            "stopped in the training of softmax,seed=0.safetensors; what was finished before is "
            "kept");
  EXPECT_EQ(error_of([&] { train_retrieval({.output = folder.path()}, {}); }),
            "max retrieval: needs at least one seed");
  EXPECT_EQ(error_of([&] {
              train_retrieval({.seeds = {1, 1}, .output = folder.path()}, {});
            }),
            "max retrieval: seeds must differ");
  std::ofstream(folder / "file") << "x";
  EXPECT_NE(error_of([&] {
              train_retrieval(small_request(folder / "file/x"), {});
            }).find("cannot be made"),
            std::string::npos);
}

}  // namespace kelvin::train_retrieval_test
