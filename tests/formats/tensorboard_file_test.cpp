#include "kelvin/formats/tensorboard_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <limits>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/events.h"

namespace kelvin::tensorboard_file_test {

constexpr double kSeconds = 1700000000.25;
constexpr auto kFloat = std::numeric_limits<float>();
constexpr auto kInteger = std::numeric_limits<int64_t>();

// No file grows beyond this while it lives, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(TensorboardFile, BeginsWithTheVersionOfTheFormat) {
  const TemporaryFolder folder;
  const TensorboardFile file(folder.path(), kSeconds, "host.17", 0);
  EXPECT_EQ(file.path(), folder / "events.out.tfevents.1700000000.host.17");
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].seconds, kSeconds);
  EXPECT_EQ(events[0].step, 0);
}

TEST(TensorboardFile, HoldsWhatWasAdded) {
  const TemporaryFolder folder;
  TensorboardFile file(folder.path(), kSeconds, "x", 0);
  file.add(0, kSeconds + 1, {{"loss", 2.5}, {"rank/κ", -0.1}});
  EXPECT_EQ(read_events(file.path()).size(), 2U);  // flushed, though more follows
  file.add(300, kSeconds + 2, {{"loss", 1e-3}});
  file.add(301, kSeconds + 2, {});
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[1].seconds, kSeconds + 1);
  EXPECT_EQ(events[1].values, (std::map<std::string, float>{{"loss", 2.5F}, {"rank/κ", -0.1F}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(events[2].values, (std::map<std::string, float>{{"loss", 1e-3F}}));
  EXPECT_EQ(events[3].step, 301);
  EXPECT_TRUE(events[3].values.empty());
}

TEST(TensorboardFile, TellsReadersWhereARunGoesOn) {
  const TemporaryFolder folder;
  const TensorboardFile file(folder.path(), kSeconds, "x", 1000);
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].session_log, "START");
  EXPECT_EQ(events[1].step, 1000);
  EXPECT_EQ(events[1].seconds, kSeconds);
}

TEST(TensorboardFile, KeepsValuesThatAreNoOrdinaryNumbers) {
  const TemporaryFolder folder;
  TensorboardFile file(folder.path(), kSeconds, "x", 0);
  file.add(1, kSeconds,
           {{"nan", std::nan("")},
            {"inf", HUGE_VAL},
            {"-inf", -HUGE_VAL},
            {"denormal", kFloat.denorm_min()},
            {"largest", kFloat.max()},
            {"-0", -0.0},
            {"beyond float", 1e300}});
  const auto values = read_events(file.path()).at(1).values;
  EXPECT_TRUE(std::isnan(values.at("nan")));
  EXPECT_EQ(values.at("inf"), HUGE_VALF);
  EXPECT_EQ(values.at("-inf"), -HUGE_VALF);
  EXPECT_EQ(values.at("denormal"), kFloat.denorm_min());
  EXPECT_EQ(values.at("largest"), kFloat.max());
  EXPECT_TRUE(std::signbit(values.at("-0")));
  EXPECT_EQ(values.at("beyond float"), HUGE_VALF);
}

TEST(TensorboardFile, KeepsEveryStep) {
  const TemporaryFolder folder;
  TensorboardFile file(folder.path(), kSeconds, "x", 0);
  const std::vector<int64_t> steps = {
      0, 1, 127, 128, 16383, 16384, 1 << 30, -1, -128, kInteger.max(), kInteger.min()};
  for (const auto step : steps) file.add(step, kSeconds, {{"x", 1}});
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), steps.size() + 1);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(events[i + 1].step, steps[i]);
}

TEST(TensorboardFile, HoldsManyEventsOfManyValues) {
  const TemporaryFolder folder;
  TensorboardFile file(folder.path(), kSeconds, "x", 0);
  for (int64_t step = 0; step < 200; ++step) {
    std::map<std::string, double> values;
    for (int i = 0; i < 20; ++i)
      values["layer/" + std::to_string(i)] = static_cast<double>(step * i);
    file.add(step, kSeconds + static_cast<double>(step), values);
  }
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 201U);
  EXPECT_EQ(events[200].step, 199);
  EXPECT_EQ(events[200].values.size(), 20U);
  EXPECT_EQ(events[200].values.at("layer/19"), 199 * 19);
}

TEST(TensorboardFile, SortsByTimeAmongOthers) {
  const TemporaryFolder folder;
  const TensorboardFile early(folder.path(), 999999999, "z", 0);
  const TensorboardFile late(folder.path(), 1000000000, "a", 0);
  EXPECT_LT(early.path().string(), late.path().string());
}

TEST(TensorboardFile, DoesNotWriteIntoAFileThatIsThere) {
  const TemporaryFolder folder;
  const TensorboardFile file(folder.path(), kSeconds, "x", 0);
  EXPECT_EQ(error_of([&] { TensorboardFile(folder.path(), kSeconds, "x", 0); }),
            file.path().string() + ": must be a new file, is there already");
}

TEST(TensorboardFile, NamesAFolderThatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      error_of([&] { TensorboardFile(folder / "no", kSeconds, "x", 0); }),
      folder / "no/events.out.tfevents.1700000000.x" + ": cannot write: No such file or directory");
}

TEST(TensorboardFile, RefusesWhatNoNameCanBeMadeOf) {
  EXPECT_EQ(error_of([] { TensorboardFile("f", -1, "x", 0); }),
            "f: the time of an event file must be in seconds since 1970, got -1");
  EXPECT_EQ(error_of([] { TensorboardFile("f", std::nan(""), "x", 0); }),
            "f: the time of an event file must be in seconds since 1970, got nan");
  EXPECT_EQ(error_of([] { TensorboardFile("f", 1, "a/b", 0); }),
            "f: the suffix of an event file must be part of a name, got 'a/b'");
  EXPECT_EQ(error_of([] { TensorboardFile("f", 1, "", 0); }),
            "f: the suffix of an event file must be part of a name, got ''");
}

TEST(TensorboardFile, IsReadableAfterADiskThatWasFullForAWhile) {
  const TemporaryFolder folder;
  TensorboardFile file(folder.path(), kSeconds, "x", 0);
  file.add(1, kSeconds, {{"loss", 1}});
  std::string message;
  {
    const FileSizeLimit limit(std::filesystem::file_size(file.path()) + 5);  // a part fits
    message = error_of([&] { file.add(2, kSeconds, {{"loss", 2}}); });
  }
  EXPECT_EQ(message, file.path().string() + ": cannot write: File too large");
  file.add(3, kSeconds, {{"loss", 3}});
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 3);
}

// That the reader would notice: every byte of the file matters to it.
TEST(TensorboardFile, IsJudgedByAReaderThatSeesEveryWrongByte) {
  const TemporaryFolder folder;
  const TensorboardFile file(folder.path(), kSeconds, "x", 0);
  const auto good = read_file(file.path());
  for (const size_t at : {size_t{0}, size_t{9}, size_t{15}, good.size() - 1}) {
    auto wrong = good;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    write_file_atomically(folder / "wrong", wrong);
    const auto result =
        StartedCommand({"/usr/bin/python3",
                        std::string(KELVIN_SOURCE_DIR) + "/tests/support/read_events.py",
                        folder / "wrong"})
            .wait();
    EXPECT_NE(result.exit_code, 0) << "byte " << at;
  }
}

}  // namespace kelvin::tensorboard_file_test
