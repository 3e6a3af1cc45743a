#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/ops/tensors.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// What a run writes down while it trains.  All of it only grows, line by line, so that a run can go
// on from any moment whose sizes are known; definitions of what is cut back stay, and are met
// again.  Curves have a file for each line of the trajectory, and go with it.
class RunLog {
 public:
  // Events for TensorBoard replace those of earlier processes from `first_step` on.
  RunLog(const RunFolder& folder, const RunContext& context, int64_t first_step);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // One flat object: what was observed at a step.
  void add_metrics(const nlohmann::ordered_json& line) const;

  // The singular values of the logits, and the readings, each with the id of its definition, which
  // trajectory_definitions.json holds once.
  void add_trajectory(int64_t step, double epoch, const Readings& readings) const;

  // What is too large for a line of the trajectory, as trajectory/step-N.npz; nothing if there are
  // none.  Before the line: at no moment is there one whose curves are missing.
  void add_curves(int64_t step, const NamedTensors& curves) const;

  // What a person should know: written down, and told to the outside.
  void add_note(int64_t step, const std::string& note) const;

  // For TensorBoard only.
  void add_scalars(int64_t step, const std::map<std::string, double>& values) const;

  std::vector<nlohmann::ordered_json> metrics() const;

  // The trajectory's spectra as curves.npz.
  void write_curves() const;

  // Bytes of each file now; after it they outlive a crash of the machine.
  std::map<std::string, int64_t> sizes() const;

  // An Error, before anything is changed, if the files of a run cannot be cut back to these sizes;
  // gives the lines of metrics that would stay.
  static std::vector<nlohmann::ordered_json> lines_to_keep(
      const std::filesystem::path& run, const std::map<std::string, int64_t>& sizes);

  // Cuts the files of a run back to these sizes; to nothing those that are not named.  Curves of
  // looks whose line is gone are removed.
  static void cut_back(const std::filesystem::path& run,
                       const std::map<std::string, int64_t>& sizes);

 private:
  struct Events;
  const RunFolder& folder_;
  const RunContext& context_;
  std::unique_ptr<Events> events_;
  mutable nlohmann::ordered_json definitions_;  // by id, as in trajectory_definitions.json
};

}  // namespace kelvin
