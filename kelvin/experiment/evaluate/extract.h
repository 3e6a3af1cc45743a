#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/data/batches.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/evaluation.h"
#include "kelvin/model/model.h"
#include "kelvin/model/record.h"

namespace kelvin {

struct ExtractOptions {
  Split split = Split::test;
  bool is_ood = false;
  bool with_layers = false;     // records of all layers, not only of the classifier
  bool with_attention = false;  // records of all attention layers
  // Batch normalisations use the statistics of each batch instead of those of training: for a
  // network that is not trained yet.
  bool batch_statistics = false;
  int64_t batch_size =
      256;  // of 32 x 32 images; fewer of larger ones or with attention, at least 16
  std::vector<int64_t> indices = {};  // which samples; empty for all
};

// As many batches as that takes, of nearly equal size: a last batch of one image would have no
// statistics.  Gives where each begins, and the end.
std::vector<int64_t> equal_batches(int64_t samples, int64_t batch_size);

// Runs the model once over a split in evaluation mode without gradients, in
// float32, and hands each batch's record, in which nothing requires gradients, to `consume`.
// Normalises with the statistics of `trained_on`, also for OOD images: the network expects
// them. Leaves the model in the mode it was in.
void extract(Model& model, const Dataset& dataset, const Dataset& trained_on,
             const ExtractOptions& options, const std::function<void(const Record&)>& consume);

struct GradientOptions {
  std::vector<int64_t> indices;  // of the training split, one batch
  // Of logits and labels, one number: what is differentiated.
  std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)> loss;
  bool batch_statistics = false;  // as above
  BatchOptions views = {};        // how images are shown: as they are, or several views of each
};

// One batch of the training split, with the gradients of its loss in the weight of every layer.  In
// evaluation mode and float32; leaves no gradients behind.
Record extract_gradients(Model& model, const Dataset& dataset, const GradientOptions& options);

// Records of what a network does with the dataset it was trained on and with OOD ones.
class NetworkRecords : public RecordSource {
 public:
  NetworkRecords(Model& model, const Dataset& own, const std::vector<Dataset>& ood)
      : model_(model), own_(own), ood_(ood) {}

  size_t ood_datasets() const override { return ood_.size(); }
  bool has_train(const std::optional<size_t>& /*ood*/) const override { return true; }
  void show(const Pass& pass, const Consume& consume) override;
  Record gradients() override { return extract_gradients(model_, own_, for_gradients()); }

  // Of one test sample, with all that `needs` asks for: what memory is counted from.
  Record example(const Needs& needs) const;

 protected:
  const Dataset& own() const { return own_; }
  // Which of the images, in which order and in which mode of the network.
  virtual void choose(const Pass& pass, const Images& images, ExtractOptions& options) const = 0;
  virtual GradientOptions for_gradients() const = 0;
  // Sees each record before anybody else does.
  virtual void look_at(const Pass& pass, const Record& record) = 0;

 private:
  Model& model_;
  const Dataset& own_;
  const std::vector<Dataset>& ood_;
};

}  // namespace kelvin
