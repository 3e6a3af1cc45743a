#include "kelvin/runs/scores_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

TEST(ScoresFile, KeepsEveryBitOfScoresInTheOrderOfDetectors) {
  const TemporaryFolder folder;
  const fs::path scores_folder = folder / "a/b";
  const std::vector<double> id = {0.1, -1e-300, 1.0 / 3};
  write_scores(scores_folder,
               {.detector = "neco", .ood = "b", .id_scores = {1}, .ood_scores = {2}});
  write_scores(scores_folder, {.detector = "msp",
                               .ood = "set.v1",
                               .id_scores = id,
                               .ood_scores = {-std::numeric_limits<double>::infinity()}});
  const auto scores = load_scores(scores_folder);
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].ood, "set.v1");
  EXPECT_EQ(scores[0].id_scores, id);
  EXPECT_EQ(scores[0].ood_scores, std::vector<double>{-std::numeric_limits<double>::infinity()});
  EXPECT_EQ(scores[1].detector, "neco");
}

TEST(ScoresFile, MayBeOfDatasetsThatAreCalledByAPath) {
  const TemporaryFolder folder;
  const std::string name = "imagefolder:/tmp/50%2F/x@y";
  write_scores(folder / "s", {.detector = "msp", .ood = name, .id_scores = {1}, .ood_scores = {2}});
  const auto scores = load_scores(folder / "s");
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].detector, "msp");
  EXPECT_EQ(scores[0].ood, name);
}

TEST(ScoresFile, OfNoFolderIsNone) { EXPECT_TRUE(load_scores("/no/such/folder").empty()); }

TEST(ScoresFile, RefusesWhatIsNoScore) {
  const TemporaryFolder folder;
  const std::string path = folder / "msp@a.csv";
  for (const std::string line : {"id", "id,", "id,1x", "known,1", "ood,1,2"}) {
    write_file_atomically(path, "population,score\nid,1\n" + line + "\n");
    EXPECT_EQ(error_of([&] { load_scores(fs::path(path).parent_path()); }),
              path + ": line 3: must be population,score, got '" + line + "'");
  }
}

TEST(ScoresFile, SaysWhichFolderCannotBeMade) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  const std::string inside = folder / "file/scores";
  const auto message = error_of([&] {
    write_scores(inside, {.detector = "msp", .ood = "a", .id_scores = {1}, .ood_scores = {2}});
  });
  EXPECT_TRUE(message.starts_with(inside + ": cannot be made: ")) << message;
}

}  // namespace
}  // namespace kelvin
