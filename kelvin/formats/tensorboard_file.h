#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace kelvin {

// Scalars over steps as TensorBoard shows them: records of TensorFlow's Event messages, with a
// checksum each.
class TensorboardFile {
 public:
  // A new file events.out.tfevents.SECONDS.SUFFIX in `folder`, an Error if it is there already.
  // `seconds` is the time of day (UNIX), which also dates the first events; `suffix` makes the name
  // unique (host, process).  Of what earlier files of the folder say, readers drop all steps from
  // `first_step` on: a run that goes on repeats them.
  TensorboardFile(const std::filesystem::path& folder, double seconds, const std::string& suffix,
                  int64_t first_step);

  // Whether the constructor would find its file there already.
  static bool exists(const std::filesystem::path& folder, double seconds,
                     const std::string& suffix);

  // One event, flushed so that a crash loses at most the event being written.  Names are UTF-8;
  // what stands before a slash groups them.  Values are stored as float32, as the format has it.
  void add(int64_t step, double seconds, const std::map<std::string, double>& values);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(std::string_view event);

  std::filesystem::path path_;
  int64_t size_ = 0;  // of the records that are whole
};

}  // namespace kelvin
