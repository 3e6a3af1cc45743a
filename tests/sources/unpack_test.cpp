#include "kelvin/sources/unpack.h"

#include <gtest/gtest.h>

#include <fstream>

#include "kelvin/sources/partial_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/python.h"

namespace kelvin::unpack_test {

namespace fs = std::filesystem;

// What the scripts below have at hand: `tar` takes (name, content) and (name, type, link) triples.
constexpr const char* kHelpers = R"(
import io, os, subprocess, sys, tarfile, zipfile
path = sys.argv[1]
def add(archive, name, content=b'', kind=tarfile.REGTYPE, link=''):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    archive.addfile(info, io.BytesIO(content))
def tar(members, mode='w'):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for member in members: add(archive, *member)
    return file.getvalue()
def ar(members):
    file = b'!<arch>\n'
    for name, content in members:
        file += (f'{name:<16}{0:<12}{0:<6}{0:<6}{"100644":<8}{len(content):<10}`\n').encode()
        file += content + b'\n' * (len(content) % 2)
    return file
def save(content): open(path, 'wb').write(content)
)";

class Unpack : public testing::Test {
 protected:
  // Runs a script that saves an archive.
  void make(const std::string& script) const { python_output(kHelpers + script, {archive_}); }

  void unpack(int64_t most_bytes = 1 << 20) const {
    unpack_members(archive_, {{"a.bin", {folder_ / "a", 100}}, {"b.bin", {folder_ / "b", 100}}},
                   most_bytes);
  }

  // The reason alone, after the archive's name.
  std::string refusal() const {
    const auto error = error_of([&] { unpack(); });
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    const auto where = archive_ + ": ";
    EXPECT_EQ(error.rfind(where, 0), 0U) << error;
    return error.substr(std::min(where.size(), error.size()));
  }

  std::string refusal_of_tar(const std::string& members) const {
    make("save(tar(" + members + "))");
    return refusal();
  }

  void expect_both() const {
    EXPECT_EQ(whole_file(folder_ / "a"), "first");
    EXPECT_EQ(whole_file(folder_ / "b"), "second");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2);
    fs::remove(folder_ / "a");
    fs::remove(folder_ / "b");
  }

  TemporaryFolder made_;
  TemporaryFolder folder_;
  std::string archive_ = made_ / "x";
};

const std::string kBoth = "[('p/a.bin', b'first'), ('p/c', b'unwanted'), ('q/b.bin', b'second')]";

TEST_F(Unpack, ReadsTarsOfEveryCompression) {
  for (const char* mode : {"w", "w:gz", "w:xz"}) {
    make("save(tar(" + kBoth + ", '" + mode + "'))");
    unpack();
    expect_both();
  }
}

TEST_F(Unpack, ReadsZstd) {
  if (!fs::exists("/usr/bin/zstd")) GTEST_SKIP() << "no zstd to make one";
  make("save(subprocess.run(['/usr/bin/zstd'], input=tar(" + kBoth +
       "), capture_output=True).stdout)");
  unpack();
  expect_both();
}

TEST_F(Unpack, ReadsZips) {
  for (const char* method : {"ZIP_STORED", "ZIP_DEFLATED"}) {
    make("with zipfile.ZipFile(path, 'w', zipfile." + std::string(method) +
         ") as z:\n for name, content in " + kBoth + ": z.writestr(name, content)");
    unpack();
    expect_both();
  }
}

TEST_F(Unpack, ReadsTheDataOfDebianPackages) {
  for (const char* mode : {"w:gz", "w:xz"}) {
    make(
        "save(ar([('debian-binary', b'2.0\\n'), ('control.tar.gz', tar([('a.bin', b'no')],'w:gz'))"
        ", ('data.tar.xz', tar(" +
        kBoth + ", '" + mode + "'))]))");
    unpack();
    expect_both();
  }
}

TEST_F(Unpack, RefusesPathsThatLeaveTheFolderEvenIfUnwanted) {
  for (const char* path : {"../c", "p/../../c", "/etc/c", "p/..", "..\\c", "\\c", "/a.bin"}) {
    make("save(tar([(" + std::string("r'") + path + "', b'x')]))");
    EXPECT_EQ(refusal(),
              "members must stay inside of their folder, has '" + std::string(path) + "'");
  }
}

TEST_F(Unpack, RefusesAWantedMemberThatIsNoRegularFile) {
  for (const char* kind : {"SYMTYPE", "LNKTYPE", "CHRTYPE", "BLKTYPE", "FIFOTYPE"}) {
    EXPECT_EQ(
        refusal_of_tar("[('p/a.bin', b'', tarfile." + std::string(kind) + ", '/etc/passwd')]"),
        "'p/a.bin' must be a regular file, is a link, folder or device")
        << kind;
    EXPECT_FALSE(fs::exists(fs::symlink_status(folder_ / "a"))) << kind;
  }
}

TEST_F(Unpack, WritesNothingThroughALinkInTheArchive) {
  make("save(tar([('p', b'', tarfile.SYMTYPE, '" + made_.path().string() +
       "'), ('p/a.bin', b'first'), ('b.bin', b'second')]))");
  unpack();
  EXPECT_FALSE(fs::exists(made_ / "a.bin"));
  expect_both();
}

TEST_F(Unpack, RefusesASecondMemberOfOneName) {
  EXPECT_EQ(refusal_of_tar("[('a.bin', b'first'), ('p/a.bin', b'other')]"),
            "must hold 'a.bin' once, holds it again as 'p/a.bin'");
  EXPECT_EQ(whole_file(folder_ / "a"), "first");
}

TEST_F(Unpack, ListsWhatIsMissing) {
  EXPECT_EQ(refusal_of_tar("[('c', b'first')]"), "lacks a.bin, b.bin");
  EXPECT_EQ(refusal_of_tar("[('b.bin', b'first')]"), "lacks a.bin");
}

TEST_F(Unpack, GoesWithoutWhatIsNotRequired) {
  make("save(tar([('a.bin', b'first')]))");
  unpack_members(
      archive_, {{"a.bin", {folder_ / "a", 100}}, {"b.bin", {folder_ / "b", 100, false}}}, 1 << 20);
  EXPECT_EQ(whole_file(folder_ / "a"), "first");
  EXPECT_FALSE(fs::exists(folder_ / "b"));
}

TEST_F(Unpack, KeepsTheLimitOfAMember) {
  make("save(tar([('a.bin', b'x' * 101)]))");
  EXPECT_EQ(error_of([&] { unpack(); }),
            folder_ / "a" + ": must have at most 100 bytes, more are there");
}

TEST_F(Unpack, KeepsTheLimitOfTheWhole) {
  const std::string expected = "must inflate to at most 1048576 bytes, more are there";
  make("save(tar([('c', bytes(1 << 22))], 'w:gz'))");
  EXPECT_EQ(refusal(), expected);
  make("save(ar([('data.tar', tar([('c', bytes(1 << 22))], 'w:xz'))]))");
  EXPECT_EQ(refusal(), expected);
  make("with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('c', bytes(1<<22))");
  EXPECT_EQ(refusal(), expected);
  make("save(tar([(str(i), b'') for i in range(3000)], 'w:gz'))");
  EXPECT_EQ(refusal(), expected);
}

TEST_F(Unpack, RefusesAMemberWithHoles) {
  make(R"(
folder = os.path.dirname(path)
with open(folder + '/a.bin', 'wb') as file:
    file.seek(1 << 20)
    file.write(b'x' * 50)
subprocess.run(['tar', '-S', '-cf', path, '-C', folder, 'a.bin'], check=True)
)");
  EXPECT_EQ(refusal(), "'a.bin' has holes at 0");
}

TEST_F(Unpack, RefusesWhatIsNoArchive) {
  for (const char* content :
       {"b'garbage' * 1000", "b'\\x1f\\x8b' + bytes(100)", "bytes(3)", "b''"}) {
    make("save(" + std::string(content) + ")");
    EXPECT_NE(refusal(), "") << content;
  }
  fs::remove(archive_);
  EXPECT_NE(refusal().find("Failed to open"), std::string::npos);
}

TEST_F(Unpack, RefusesACutArchive) {
  make("save(tar([('a.bin', os.urandom(90)), ('b.bin', os.urandom(90))], 'w:gz')[:-40])");
  EXPECT_NE(refusal(), "");
}

TEST_F(Unpack, RefusesAnEncryptedMember) {
  // The flag alone: libarchive then asks for a passphrase.
  make(R"(
with zipfile.ZipFile(path, 'w') as z: z.writestr('a.bin', b'x' * 40)
bytes_ = bytearray(open(path, 'rb').read())
bytes_[6] |= 1; bytes_[bytes_.index(b'PK\x01\x02') + 8] |= 1
save(bytes_)
)");
  EXPECT_NE(refusal(), "");
}

TEST_F(Unpack, DoesNotOverwrite) {
  std::ofstream(folder_ / "a") << "old";
  make("save(tar(" + kBoth + "))");
  EXPECT_EQ(error_of([&] { unpack(); }), folder_ / "a" + ": cannot be made: File exists");
  EXPECT_EQ(whole_file(folder_ / "a"), "old");
}

TEST_F(Unpack, SurvivesDamage) {
  for (const auto& [script, seed] : std::map<std::string, uint32_t>{
           {"save(tar(" + kBoth + "))", 1},
           {"save(tar(" + kBoth + ", 'w:gz'))", 2},
           {"save(tar(" + kBoth + ", 'w:xz'))", 3},
           {"save(ar([('data.tar.gz', tar(" + kBoth + ", 'w:gz'))]))", 4},
           {"with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:\n for n, c in " + kBoth +
                ": z.writestr(n, c)",
            5}}) {
    make(script);
    expect_values_or_errors(whole_file(archive_), 80, seed, [&](const std::string& bytes) {
      std::ofstream(archive_, std::ios::binary) << bytes;
      fs::remove(folder_ / "a");
      fs::remove(folder_ / "b");
      unpack();
    });
  }
}

}  // namespace kelvin::unpack_test
