#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/evaluate/ood_groups.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// Stands for every detector that the records have enough for.
inline constexpr auto kAllDetectors = "all";

// Every registered detector if `asked` is "all" alone; an Error if a name is unknown or given
// twice.
std::vector<std::string> detector_names(const std::vector<std::string>& asked);

// What detectors said of known and of OOD samples.
struct Detected {
  Readings readings;
  std::vector<Scores> scores;
};

// Detectors that are fitted on training samples of one network, then shown known and OOD ones.
class Detection {
 public:
  // An optional detector that cannot be fitted or cannot score is left out; of any other that is an
  // Error.
  void add(std::unique_ptr<Detector> detector, bool is_optional);
  bool is_empty() const { return detectors_.empty(); }
  size_t size() const { return detectors_.size(); }

  // Gathers; `record` is of the training split.
  void see_train(const Record& record);
  // After the last of them; `before_each` is told the name of each detector.
  void fit(const std::function<void(const std::string&)>& before_each);
  // Of the test split, known or OOD.
  void see_test(const Record& record);

  // Of each detector and OOD dataset, and means over the groups.
  Detected results(const OodGroups& groups);
  // Of each OOD dataset, if there are features; after results.  The same number as that of the
  // measure neural_collapse.
  Readings orthodev() const;

  // Which detectors were left out and why, and which say nothing; a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  // About the bytes that `samples` such as those of `example` take while detectors are fitted.
  int64_t memory(const Record& example, int64_t samples) const;

 private:
  using Tensors = std::vector<torch::Tensor>;

  struct Scored {
    std::unique_ptr<Detector> detector;
    bool is_optional = false;
    Tensors id = {};
    std::map<std::string, Tensors> ood = {};  // by OOD dataset
  };

  // Records of one population, put together.
  struct Gathered {
    Record last = {};
    Tensors features = {};
    Tensors logits = {};
    Tensors labels = {};
    int64_t samples = 0;

    void add(const Record& record);
    // In float64, once for all detectors.
    Record whole() const;
  };

  struct FeatureSum {
    torch::Tensor sum = {};  // [dims] in float64
    int64_t samples = 0;
  };

  void score(Gathered& waiting);
  // Does `work` with each detector; what an optional one throws leaves it out, what `before_each`
  // throws ends it.
  void with_each(
      const std::function<void(Scored&)>& work,
      const std::function<void(const std::string&)>& before_each = [](const std::string&) {});
  Readings readings_of(const Scored& scored, const Scores& scores) const;

  std::vector<Scored> detectors_;
  std::vector<std::string> notes_;
  Gathered train_;
  int64_t train_samples_ = 0;
  std::map<std::string, Gathered> waiting_;  // by OOD dataset, "" for the known one
  torch::Tensor class_means_;                // [classes that have samples, dims]; may be undefined
  std::map<std::string, FeatureSum> ood_;    // by dataset
};

}  // namespace kelvin
