#include "kelvin/runs/scores_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::scores_file_test {

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

TEST(ScoresFile, OfAVeryLongNameHasAShortOne) {
  const TemporaryFolder folder;
  const auto path = "imagelist:/data/" + std::string(300, 'x') + "/a,b%/\"c\"\n";
  std::vector<std::string> names;
  for (const char* end : {"first", "second"}) names.push_back(path + end);
  for (const auto& name : names) {
    write_scores(folder / "s",
                 {.detector = "msp", .ood = name, .id_scores = {1, 0.5}, .ood_scores = {2}});
  }
  for (const auto& entry : fs::directory_iterator(folder / "s")) {
    EXPECT_LE(entry.path().filename().string().size(), 255U - std::string(".part").size());
  }
  const auto scores = load_scores(folder / "s");
  ASSERT_EQ(scores.size(), 2U);
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(scores[i].detector, "msp");
    EXPECT_EQ(scores[i].ood, names[i]);
    EXPECT_EQ(scores[i].id_scores, (std::vector<double>{1, 0.5}));
    EXPECT_EQ(scores[i].ood_scores, std::vector<double>{2});
  }
}

// Neither through letters of several bytes nor through encoded ones.
TEST(ScoresFile, CutsLongNamesBetweenLetters) {
  const TemporaryFolder folder;
  for (size_t length = 180; length < 200; ++length) {
    for (const std::string letter : {"ä", "/", "€"}) {
      std::string name(length, 'x');
      for (int i = 0; i < 40; ++i) name += letter;
      write_scores(folder / "s",
                   {.detector = "d", .ood = name, .id_scores = {1}, .ood_scores = {}});
      EXPECT_EQ(load_scores(folder / "s").at(0).ood, name);
      const auto file = fs::directory_iterator(folder / "s")->path().filename().string();
      const auto beginning = file.substr(0, file.rfind('~'));
      EXPECT_NE(beginning.back(), '%') << file;
      EXPECT_NO_THROW(static_cast<void>(nlohmann::json(file).dump())) << "not UTF-8";
      fs::remove_all(folder / "s");
    }
  }
}

TEST(ScoresFile, MustHaveItsColumns) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "msp@a.csv", "");
  EXPECT_EQ(error_of([&] { load_scores(folder.path()); }),
            (folder / "msp@a.csv") + ": line 1: must be population,score, got ''");
  EXPECT_EQ(error_of([&] { load_scores(folder / "msp@a.csv"); }),
            (folder / "msp@a.csv") + ": is a file, must be a folder");
}

}  // namespace kelvin::scores_file_test
