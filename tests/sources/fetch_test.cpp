#include "kelvin/sources/fetch.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>

#include "kelvin/sources/partial_file.h"
#include "kelvin/sources/staging.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/local_server.h"
#include "tests/support/python.h"
#include "tests/support/tiny_dataset.h"

namespace kelvin::fetch_test {

namespace fs = std::filesystem;

// A server of the tiny dataset, and a data folder to fetch it into.
class Fetch : public testing::Test {
 protected:
  // One download, as served under `path`.
  Download serve(const std::string& name, const std::string& bytes,
                 const std::vector<std::string>& faults = {"plain"}) const {
    write_to(served_ / name, bytes);
    Download download{.file_name = "tiny-" + name,
                      .bytes = static_cast<int64_t>(bytes.size()),
                      .md5 = md5_of(bytes)};
    for (const auto& fault : faults) {
      download.mirrors.push_back(fault == "closed"
                                     ? closed_address(name)
                                     : server_.address((fs::path(fault) / name).string()));
    }
    return download;
  }

  Route gzip_route(const std::vector<std::string>& faults = {"plain"}) const {
    Route route{.unpacking = Unpacking::gunzip};
    for (const auto& [name, bytes] : tiny_.files) {
      route.downloads.push_back(serve(name + ".gz", gzipped(bytes), faults));
    }
    return route;
  }

  // A tar with the dataset, after `script` changed the `members`, a dictionary of bytes; it can
  // also `add` anything to the `archive`.
  Route archive_route(const std::string& script = "",
                      const std::vector<std::string>& faults = {"plain"}) const {
    for (const auto& [name, bytes] : tiny_.files) write_to(served_ / "in/" + name, bytes);
    python_output(R"(
import io, os, sys, tarfile
folder, path = sys.argv[1:]
members = {name: open(f'{folder}/{name}', 'rb').read() for name in os.listdir(folder)}
with tarfile.open(path, 'w:gz', compresslevel=1) as archive:
    def add(name, content=b'', kind=tarfile.REGTYPE, link=''):
        info = tarfile.TarInfo(name)
        info.size, info.type, info.linkname = len(content), kind, link
        archive.addfile(info, io.BytesIO(content))
)" + script + R"(
    for name, content in members.items(): add('package/' + name, content)
)",
                  {served_ / "in", served_ / "x.tgz"});
    return {.unpacking = Unpacking::archive,
            .downloads = {serve("x.tgz", whole_file(served_ / "x.tgz"), faults)}};
  }

  FetchReport run() const { return fetch(tiny_.known, data_, options_); }

  // The message, which must begin with the dataset's name.
  std::string refusal() const {
    const auto error = error_of([&] { run(); });
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_EQ(error.rfind("tiny: ", 0), 0U) << error;
    return error.substr(std::min<size_t>(6, error.size()));
  }

  void expect_dataset() const {
    for (const auto& [name, bytes] : tiny_.files) {
      EXPECT_EQ(whole_file(data_ / kTinyFolder / name), bytes) << name;
    }
    EXPECT_FALSE(fs::exists(data_ / ".partial"));
  }

  // Not even the folder for what is incomplete.
  void expect_nothing() const { EXPECT_TRUE(!fs::exists(data_) || fs::is_empty(data_)); }

  size_t requests() const { return server_.requests().size(); }

  LocalServer& server_ = fresh_server();
  const TemporaryFolder& served_ = server_.folder();
  TemporaryFolder folder_;
  fs::path data_ = folder_ / "data";
  TinyDataset tiny_ = tiny_dataset();
  FetchOptions options_{.limits = {.connect_seconds = 5,
                                   .slow_seconds = 5,
                                   .least_progress_bytes = 1,
                                   .attempts_without_progress = 1,
                                   .pause_seconds = 0.01}};
};

TEST_F(Fetch, BringsPackedFiles) {
  tiny_.known.routes = {gzip_route()};
  const auto report = run();
  EXPECT_EQ(report.outcome, FetchOutcome::fetched);
  EXPECT_EQ(report.folder, data_ / kTinyFolder);
  EXPECT_EQ(report.addresses.size(), 4U);
  int64_t bytes = 0;
  for (const auto& download : tiny_.known.routes.front().downloads) bytes += download.bytes;
  EXPECT_EQ(report.bytes, bytes);
  expect_dataset();
}

TEST_F(Fetch, BringsPlainFiles) {
  Route route{.unpacking = Unpacking::copy};
  for (const auto& [name, bytes] : tiny_.files) route.downloads.push_back(serve(name, bytes));
  tiny_.known.routes = {route};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
}

TEST_F(Fetch, BringsArchives) {
  tiny_.known.routes = {archive_route("    add('package/README', b'unwanted')")};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_FALSE(fs::exists(data_ / kTinyFolder / "README"));
}

TEST_F(Fetch, SaysThatItIsThereAndTouchesNothing) {
  tiny_.known.routes = {gzip_route()};
  run();
  const auto before = requests();
  const auto time = fs::last_write_time(data_);
  const auto report = run();
  EXPECT_EQ(report.outcome, FetchOutcome::already_there);
  EXPECT_EQ(report.folder, data_ / kTinyFolder);
  EXPECT_EQ(requests(), before);
  EXPECT_EQ(fs::last_write_time(data_), time);
}

TEST_F(Fetch, ResumesAfterACutConnection) {
  tiny_.known.routes = {archive_route("", {"cut-100-1"})};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_EQ(server_.requests(),
            (std::vector<std::string>{"/cut-100-1/x.tgz -", "/cut-100-1/x.tgz bytes=100-"}));
}

TEST_F(Fetch, ResumesWhatAnEarlierProcessLeft) {
  tiny_.known.routes = {archive_route()};
  write_to(data_ / ".partial/tiny-x.tgz", whole_file(served_ / "x.tgz").substr(0, 77));
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_EQ(server_.requests(), std::vector<std::string>{"/plain/x.tgz bytes=77-"});
}

TEST_F(Fetch, DoesNotBlameAMirrorForWhatWasLeftByOthers) {
  tiny_.known.routes = {archive_route()};
  write_to(data_ / ".partial/tiny-x.tgz", "garbage");
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_EQ(server_.requests(),
            (std::vector<std::string>{"/plain/x.tgz bytes=7-", "/plain/x.tgz -"}));
}

TEST_F(Fetch, ManagesWithAServerWithoutRanges) {
  tiny_.known.routes = {archive_route("", {"norange"})};
  write_to(data_ / ".partial/tiny-x.tgz", "garbage");
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
}

TEST_F(Fetch, RefusesAWrongSumAndLeavesNothing) {
  tiny_.known.routes = {archive_route("", {"wrong"})};
  const auto& md5 = tiny_.known.routes.front().downloads.front().md5;
  const auto error = refusal();
  EXPECT_EQ(error.rfind("no mirror could deliver it: " + server_.address("wrong/x.tgz") +
                            ": must have md5 " + md5 + ", has ",
                        0),
            0U)
      << error;
  expect_nothing();
}

TEST_F(Fetch, TriesTheNextMirror) {
  tiny_.known.routes = {archive_route("", {"closed", "status-404", "wrong", "plain"})};
  std::vector<std::string> notices;
  options_.notice = [&](const std::string& line) { notices.push_back(line); };
  const auto report = run();
  EXPECT_EQ(report.outcome, FetchOutcome::fetched);
  EXPECT_EQ(report.addresses, std::vector<std::string>{server_.address("plain/x.tgz")});
  ASSERT_EQ(notices.size(), 3U);
  EXPECT_EQ(notices.at(0), closed_address("x.tgz") + ": could not connect");
  EXPECT_EQ(notices.at(1), server_.address("status-404/x.tgz") + ": HTTP status 404");
  expect_dataset();
}

TEST_F(Fetch, GoesOnAtTheNextMirrorWhereOneStalled) {
  options_.limits.slow_seconds = 1;
  tiny_.known.routes = {archive_route("", {"stall-100", "plain"})};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_EQ(server_.requests().back(), "/plain/x.tgz bytes=100-");
}

TEST_F(Fetch, TriesTheNextRoute) {
  tiny_.known.routes = {gzip_route({"status-500"}), archive_route()};
  const auto report = run();
  EXPECT_EQ(report.outcome, FetchOutcome::fetched);
  EXPECT_EQ(report.addresses, std::vector<std::string>{server_.address("plain/x.tgz")});
  expect_dataset();
}

TEST_F(Fetch, NamesEveryMirrorThatFailed) {
  tiny_.known.routes = {gzip_route({"status-500", "closed"}), archive_route("", {"status-404"})};
  EXPECT_EQ(refusal(),
            "no mirror could deliver it: " + server_.address("status-500/test-images.gz") +
                ": HTTP status 500; " + closed_address("test-images.gz") + ": could not connect; " +
                server_.address("status-404/x.tgz") + ": HTTP status 404");
  expect_nothing();
}

TEST_F(Fetch, KeepsThePartialFileWhenAMirrorFails) {
  tiny_.known.routes = {archive_route("", {"cut-10-99"})};
  options_.limits.least_progress_bytes = 1000;
  EXPECT_NE(refusal().find("the connection was cut"), std::string::npos);
  EXPECT_EQ(whole_file(data_ / ".partial/tiny-x.tgz"), whole_file(served_ / "x.tgz").substr(0, 20));
  EXPECT_FALSE(fs::exists(data_ / "tiny"));
}

TEST_F(Fetch, TriesAnExtraMirrorFirst) {
  tiny_.known.routes = {archive_route("", {"status-500"})};
  options_.extra_mirror = server_.address("plain/");
  EXPECT_EQ(run().addresses, std::vector<std::string>{server_.address("plain/x.tgz")});
  EXPECT_EQ(server_.requests(), std::vector<std::string>{"/plain/x.tgz -"});
  expect_dataset();
}

TEST_F(Fetch, WantsAWebAddressForAnExtraMirror) {
  tiny_.known.routes = {archive_route()};
  options_.extra_mirror = "/srv/data";
  EXPECT_EQ(refusal(), "the extra mirror must begin with http:// or https://, got '/srv/data'");
}

TEST_F(Fetch, StopsOnRequestAndGoesOnTheNextTime) {
  tiny_.known.routes = {archive_route("", {"stall-100"})};
  bool is_begun = false;
  options_.limits.slow_seconds = 30;
  options_.progress = [&](const FetchProgress& now) {
    EXPECT_EQ(now.file_name, "tiny-x.tgz");
    is_begun = now.done >= 100;
  };
  options_.should_stop = [&] { return is_begun; };
  EXPECT_EQ(run().outcome, FetchOutcome::stopped);
  EXPECT_EQ(fs::file_size(data_ / ".partial/tiny-x.tgz"), 100U);
  EXPECT_FALSE(fs::exists(data_ / "tiny"));

  options_ = {};
  tiny_.known.routes.front().downloads.front().mirrors = {server_.address("plain/x.tgz")};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  EXPECT_EQ(server_.requests().back(), "/plain/x.tgz bytes=100-");
  expect_dataset();
}

TEST_F(Fetch, RefusesHostileArchives) {
  const std::map<std::string, std::string> hostile = {
      {"add('../../escaped', b'x')", "members must stay inside of their folder"},
      {"add('/tmp/kelvin-escaped', b'x')", "members must stay inside of their folder"},
      {"add('p/test-images', kind=tarfile.SYMTYPE, link='/etc/passwd')", "must be a regular file"},
      {"add('p/test-images', kind=tarfile.LNKTYPE, link='q')", "must be a regular file"},
      {"add('p/test-images', kind=tarfile.CHRTYPE)", "must be a regular file"},
      {"add('p/test-images', members['test-images'])", "must hold 'test-images' once"},
      {"members['test-images'] += b'x'", "must have at most 24 bytes"},
      {"members['test-images'] = members['test-images'][:-1] + b'x'",
       "tiny/raw/test-images: must have md5"},
      {"del members['test-images']", "tiny/raw/test-images: is missing"},
  };
  for (const auto& [script, expected] : hostile) {
    tiny_.known.routes = {archive_route("    " + script)};
    const auto error = refusal();
    EXPECT_NE(error.find(server_.address("plain/x.tgz") + ": "), std::string::npos) << error;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
    expect_nothing();
  }
  EXPECT_FALSE(fs::exists("/tmp/kelvin-escaped"));
}

TEST_F(Fetch, WritesNothingThroughALinkInAnArchive) {
  tiny_.known.routes = {archive_route("    add('package', kind=tarfile.SYMTYPE, link='" +
                                      folder_.path().string() + "')")};
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  EXPECT_FALSE(fs::exists(folder_ / "test-images"));
  expect_dataset();
}

TEST_F(Fetch, ReplacesABrokenDataset) {
  tiny_.known.routes = {gzip_route()};
  write_to(data_ / kTinyFolder / "train-images", "broken");
  write_to(data_ / kTinyFolder / "train-labels.gz", "broken");
  write_to(data_ / "other/file", "untouched");
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_FALSE(fs::exists(data_ / kTinyFolder / "train-labels.gz"));
  EXPECT_EQ(whole_file(data_ / "other/file"), "untouched");
}

TEST_F(Fetch, LeavesABrokenDatasetIfNothingBetterCanBeHad) {
  tiny_.known.routes = {gzip_route({"status-404"})};
  write_to(data_ / kTinyFolder / "train-images", "broken");
  refusal();
  EXPECT_EQ(whole_file(data_ / kTinyFolder / "train-images"), "broken");
}

TEST_F(Fetch, KeepsOodFilesUnlessForced) {
  tiny_.known.routes = {gzip_route()};
  write_to(data_ / kTinyFolder / "deep/thesis.tex", "years of work");
  EXPECT_EQ(refusal(), (data_ / kTinyFolder / "deep/thesis.tex").string() +
                           ": is not part of the dataset and would be lost: move it away, or "
                           "force its removal");
  EXPECT_EQ(whole_file(data_ / kTinyFolder / "deep/thesis.tex"), "years of work");
  EXPECT_EQ(requests(), 0U);
  options_.force = true;
  EXPECT_EQ(run().outcome, FetchOutcome::fetched);
  expect_dataset();
  EXPECT_FALSE(fs::exists(data_ / kTinyFolder / "deep"));
}

TEST_F(Fetch, ReplacesNoLinkAndNoFile) {
  tiny_.known.routes = {gzip_route()};
  fs::create_directories(data_ / "tiny");
  write_to(folder_ / "elsewhere/file", "precious");
  fs::create_directory_symlink(folder_ / "elsewhere", data_ / kTinyFolder);
  options_.force = true;
  const auto expected = (data_ / kTinyFolder).string() + ": must be a folder, is a link or a file";
  EXPECT_EQ(refusal(), expected);
  fs::remove(data_ / kTinyFolder);
  write_to(data_ / kTinyFolder, "a file");
  EXPECT_EQ(refusal(), expected);
  EXPECT_EQ(whole_file(folder_ / "elsewhere/file"), "precious");
}

TEST_F(Fetch, IsDoneByOneProcessAtATime) {
  tiny_.known.routes = {gzip_route()};
  const DataLock lock(data_ / ".partial", "tiny-raw");
  EXPECT_EQ(refusal(), (data_ / ".partial/tiny-raw.lock").string() +
                           ": must be free, another process holds it");
  EXPECT_EQ(requests(), 0U);
}

TEST_F(Fetch, RemovesWhatADeadProcessWasUnpacking) {
  tiny_.known.routes = {gzip_route()};
  write_to(data_ / ".partial/unpack-tiny-raw-abcdef/data/tiny/raw/train-images", "half");
  run();
  expect_dataset();
}

TEST_F(Fetch, SaysHowToGetWhatItCannotFetch) {
  EXPECT_EQ(refusal(), "cannot be fetched: ask somebody");
  write_tiny(tiny_, data_);
  EXPECT_EQ(run().outcome, FetchOutcome::already_there);
}

TEST_F(Fetch, SaysThatTheFolderCannotBeWritten) {
  tiny_.known.routes = {gzip_route()};
  write_to(folder_ / "file", "");
  data_ = folder_ / "file/data";
  EXPECT_EQ(refusal(), (data_ / ".partial").string() + ": cannot be made: Not a directory");
  EXPECT_EQ(requests(), 0U);
}

// A disk so small that the downloads do not fit, then one on which they fit but not their content.
TEST_F(Fetch, SaysThatTheDiskIsFull) {
  fs::create_directories(data_);
  if (::mount("none", data_.c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  const std::string noise(100'000, 'n');
  tiny_.files.at("test-images") += noise;
  auto& file = tiny_.known.layouts.front().test_files.front();
  file.bytes = static_cast<int64_t>(tiny_.files.at("test-images").size());
  file.md5 = md5_of(tiny_.files.at("test-images"));
  tiny_.known.routes = {
      archive_route("    add('noise', os.urandom(200000))", {"plain", "norange"})};
  const auto no_space = std::string(": cannot write: No space left on device");
  EXPECT_EQ(refusal(), (data_ / ".partial/tiny-x.tgz").string() + no_space);
  EXPECT_FALSE(fs::exists(data_ / "tiny"));
  EXPECT_EQ(requests(), 1U) << "no other mirror can help";

  fs::remove_all(data_ / ".partial");
  tiny_.known.routes = {archive_route("    add('noise', os.urandom(60000))")};
  const auto error = refusal();
  EXPECT_NE(error.find("test-images" + no_space), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(data_ / "tiny"));
  EXPECT_EQ(std::distance(fs::directory_iterator(data_ / ".partial"), {}), 1)
      << "the download alone";
  ::umount(data_.c_str());
}

}  // namespace kelvin::fetch_test
