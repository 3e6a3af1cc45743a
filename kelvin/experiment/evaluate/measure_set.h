#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/measures/measure.h"

namespace kelvin {

// Several measures as one: what they need together, and one stream of records for all.
class MeasureSet {
 public:
  void add(const std::string& name, std::unique_ptr<Measure> measure);

  const Needs& needs() const { return needs_; }
  // Whether somebody looks at the layers of training samples, not only of test samples.
  bool needs_train_layers() const { return needs_train_layers_; }
  // Whether somebody looks at training samples of OOD datasets.
  bool needs_ood_training() const { return needs_ood_training_; }
  size_t size() const { return measures_.size(); }
  bool has(const std::string& name) const;

  // Bytes that all of them hold at most when they are shown so many samples such as the one in
  // `example`.  An Error that names the largest if that is more than `limit`.
  int64_t checked_memory(const Record& example, int64_t samples, int64_t limit) const;

  // Logits that are not finite, and labels that are not of the classes of their dataset, are an
  // Error.
  void see_sample(const Record& record);
  void update(const Record& record);
  void see_gradients(const Record& record);
  // After the last update: whether somebody asks for all of them again.  Only those who did are
  // shown the updates that follow.
  bool wants_another_pass();
  // The same after all of a training split, for that split; once nobody asks any more, what
  // follows is for all of them.
  bool wants_train_again();

  // `before_each` hears the place and the name of each measure before it computes.
  Readings compute(const std::function<void(size_t, const std::string&)>& before_each =
                       [](size_t, const std::string&) {}) const;
  NamedTensors curves() const;
  // Of those alone that keep them of each look during training.
  NamedTensors curves_of_snapshot() const;

 private:
  struct Member {
    std::string name;
    std::unique_ptr<Measure> measure;
    bool is_watching = true;
  };
  std::vector<Member> measures_;
  Needs needs_;
  bool needs_train_layers_ = false;
  bool needs_ood_training_ = false;
};

}  // namespace kelvin
