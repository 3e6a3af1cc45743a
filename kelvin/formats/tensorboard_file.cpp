#include "kelvin/formats/tensorboard_file.h"

#include <fmt/format.h>

#include <bit>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/formats/crc32c.h"

namespace kelvin {
namespace {

// Numbers of the fields in TensorFlow's event.proto and summary.proto.
constexpr uint32_t kEventWallTime = 1;
constexpr uint32_t kEventStep = 2;
constexpr uint32_t kEventFileVersion = 3;
constexpr uint32_t kEventSummary = 5;
constexpr uint32_t kEventSessionLog = 7;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1;
constexpr uint32_t kValueSimpleValue = 2;
constexpr uint32_t kSessionLogStatus = 1;
constexpr uint64_t kSessionLogStart = 1;

std::string little_endian(uint64_t bits, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((bits >> (8 * i)) & 0xFF);
  return text;
}

// A message of Protocol Buffers, field by field.
class Message {
 public:
  Message& whole_number(uint32_t field, uint64_t value) {
    begin(field, /*wire_type=*/0);
    append_varint(value);
    return *this;
  }
  Message& float64(uint32_t field, double value) {
    begin(field, /*wire_type=*/1);
    bytes_ += little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    begin(field, /*wire_type=*/2);
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& float32(uint32_t field, float value) {
    begin(field, /*wire_type=*/5);
    bytes_ += little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void begin(uint32_t field, uint32_t wire_type) { append_varint(field << 3 | wire_type); }

  // Seven bits at a time, the low ones first; the highest bit says that more follow.
  void append_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message event_at(int64_t step, double seconds) {
  Message event;
  event.float64(kEventWallTime, seconds);
  event.whole_number(kEventStep, static_cast<uint64_t>(step));  // a negative one has all ten bytes
  return event;
}

// Checksums are stored disguised, so that one over data that hold checksums stays a good one.
std::string stored_checksum(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return little_endian(std::rotr(sum, 15) + 0xA282EAD8U, 4);
}

std::filesystem::path path_of(const std::filesystem::path& folder, double seconds,
                              const std::string& suffix) {
  constexpr double kMostSeconds = 1e15;
  check(seconds >= 0 && seconds < kMostSeconds, folder.string(),
        ": the time of an event file must be in seconds since 1970, got ", seconds);
  check(!suffix.empty() && suffix.find('/') == std::string::npos, folder.string(),
        ": the suffix of an event file must be part of a name, got '", suffix, "'");
  // Ten digits at least: readers take the files in the order of their names.
  return folder /
         fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(seconds), suffix);
}

}  // namespace

TensorboardFile::TensorboardFile(const std::filesystem::path& folder, double seconds,
                                 const std::string& suffix, int64_t first_step)
    : path_(path_of(folder, seconds, suffix)) {
  check(!std::filesystem::exists(path_), path_.string(), ": must be a new file, is there already");
  write_record(
      Message().float64(kEventWallTime, seconds).text(kEventFileVersion, "brain.Event:2").bytes());
  if (first_step <= 0) return;
  const auto start = Message().whole_number(kSessionLogStatus, kSessionLogStart);
  write_record(event_at(first_step, seconds).text(kEventSessionLog, start.bytes()).bytes());
}

bool TensorboardFile::exists(const std::filesystem::path& folder, double seconds,
                             const std::string& suffix) {
  return std::filesystem::exists(path_of(folder, seconds, suffix));
}

void TensorboardFile::add(int64_t step, double seconds,
                          const std::map<std::string, double>& values) {
  Message summary;
  for (const auto& [name, value] : values) {
    const auto number = static_cast<float>(value);
    summary.text(kSummaryValue,
                 Message().text(kValueTag, name).float32(kValueSimpleValue, number).bytes());
  }
  write_record(event_at(step, seconds).text(kEventSummary, summary.bytes()).bytes());
}

void TensorboardFile::write_record(std::string_view event) {
  const auto length = little_endian(event.size(), 8);
  auto record = length + stored_checksum(length);
  record += event;
  record += stored_checksum(event);
  try {
    append_bytes(path_, record);
  } catch (const Error&) {
    // Readers stop at a record that is cut short: what may follow later would be lost on them.
    std::error_code ignored;
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(size_), ignored);
    throw;
  }
  size_ += static_cast<int64_t>(record.size());
}

}  // namespace kelvin
