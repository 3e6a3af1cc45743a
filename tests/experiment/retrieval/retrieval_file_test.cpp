#include "kelvin/experiment/retrieval/retrieval_file.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/core/files.h"
#include "kelvin/model/tensors_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::retrieval_file_test {

RetrievalSettings small() {
  Config config;
  config.set("retrieval.width", 8);
  return RetrievalSettings::from(config);
}

TEST(RetrievalFile, KeepsTheNetworkAndItsConfig) {
  const TemporaryFolder folder;
  const auto settings = small();
  const auto network = settings.network();
  save_retrieval(folder / "a.safetensors", settings, network);
  const auto loaded = load_retrieval(folder / "a.safetensors");
  EXPECT_EQ(loaded.settings.resolved.values(), settings.resolved.values());
  for (size_t i = 0; i < network.parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(loaded.network.parameters()[i].second,
                             network.parameters()[i].second.detach()));
  }
}

TEST(RetrievalFile, OfSomebodyElseIsRefusedInOneLine) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, {{"a", torch::zeros({2})}});
  EXPECT_EQ(error_of([&] { load_retrieval(path); }),
            path +
                ": is no network for max retrieval that kelvin trained (its metadata have no "
                "kelvin.retrieval)");
  write_safetensors(path, {{"a", torch::zeros({2})}},
                    {{"kelvin.retrieval", small().resolved.to_toml()}});
  EXPECT_NE(error_of([&] { load_retrieval(path); }).find("psi_x.0.weight"), std::string::npos);
  Config other;
  other.set("retrieval.width", 9);
  save_retrieval(path, RetrievalSettings::from(other), small().network());
  EXPECT_EQ(error_of([&] { load_retrieval(path); }),
            path + ": its tensors are not those of its config");
  const auto whole = read_file(path);
  write_file_atomically(path, whole.substr(0, whole.size() / 2));
  EXPECT_NE(error_of([&] { load_retrieval(path); }), "");
}

TEST(RetrievalFiles, AreThoseOfFoldersInTheOrderOfTheirNames) {
  const TemporaryFolder folder;
  for (const char* name : {"b.safetensors", "a.safetensors", "c.txt"}) {
    write_file_atomically(folder / name, "");
  }
  const auto files = retrieval_files({folder.path()});
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].filename(), "a.safetensors");
  EXPECT_EQ(retrieval_files({folder / "c.txt"}).size(), 1U);
}

TEST(RetrievalFiles, HaveToBeThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { retrieval_files({folder / "none"}); }),
            (folder / "none") + ": no such file or folder");
  EXPECT_EQ(error_of([&] { retrieval_files({folder.path()}); }),
            folder.path().string() + ": holds no *.safetensors");
  EXPECT_EQ(error_of([] { retrieval_files({}); }), "max retrieval: needs at least one network");
}

TEST(BetaFile, HasFiveFiniteCoefficients) {
  const TemporaryFolder folder;
  const std::string path = folder / "beta.toml";
  write_file_atomically(path, "[beta]\ncoefficients = [1, 2, 3, 4, 5.5]\nsets = 3\n");
  EXPECT_EQ(load_beta(path), (std::array<double, 5>{1, 2, 3, 4, 5.5}));
  write_file_atomically(path, "[beta]\ncoefficients = [1, 2]\n");
  EXPECT_EQ(error_of([&] { load_beta(path); }),
            path + ": beta.coefficients must be 5 numbers, of the highest power first, got 2");
  write_file_atomically(path, "[beta]\ncoefficients = [1, 2, 3, 4, inf]\n");
  EXPECT_NE(error_of([&] { load_beta(path); }), "");
}

}  // namespace kelvin::retrieval_file_test
