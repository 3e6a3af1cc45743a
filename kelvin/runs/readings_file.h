#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// Readings in a run folder: `readings.jsonl`, one per line with the id of its
// definition, and `definitions.json`, each definition once.

// Adds to what is there; a reading that says the same thing by the same definition is replaced, and
// one of a detector by whatever definition.
void merge_readings(const std::filesystem::path& folder, const Readings& readings);

// Empty if the folder holds none.
Readings load_readings(const std::filesystem::path& folder);

// What fields_of made of a reading, without its definition; `origin` stands before messages.
Reading reading_of(const nlohmann::ordered_json& fields, const std::string& origin);

// Short, and the same for equal definitions on every machine.
std::string definition_id(const Definition& definition);

// All that tells one reading from another but its value and interval: equal for readings of the
// same thing by the same definition; of a detector by any.
std::string identity_of(const Reading& reading);

// What was measured at one moment of training: a line of a run folder's `trajectory.jsonl`.
struct TrajectoryLine {
  int64_t step = 0;  // 0: the initialisation
  double epoch = 0;
  std::vector<double> logits_singular_values = {};  // largest first
  Readings readings = {};                           // without definitions, each by its default one
};

// In the order of the file; none if the folder has no such file, and not the last line if a crash
// cut it short.
std::vector<TrajectoryLine> load_trajectory(const std::filesystem::path& folder);
// The same of the file's first `size` bytes, all of which must be whole lines.
std::vector<TrajectoryLine> load_trajectory(const std::filesystem::path& folder, int64_t size);

}  // namespace kelvin
