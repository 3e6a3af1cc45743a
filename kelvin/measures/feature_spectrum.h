#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "kelvin/numerics/covariance.h"
#include "kelvin/numerics/feature_sketch.h"

namespace kelvin {

enum class SpectrumProtocol {
  sketch,  // all features by a random projection, if they are many
  tunnel,  // at most 8000 of the features, chosen at random: as The Tunnel Effect has it
  exact,   // all features, whatever it takes
};

struct SpectrumOptions {
  SpectrumProtocol protocol = SpectrumProtocol::sketch;
  int64_t sketch = 2048;  // numbers that a sample's features are projected to, if they are more
  int64_t anchors = 256;  // of them, directions of a sample's largest variance kept as they are
};

constexpr int64_t kTunnelFeatures = 8000;

// Singular values of a centred matrix [samples, features], descending.  A projection to k numbers
// adds to every eigenvalue, as far as its direction is not anchored, the variance of the tail over
// k.  Of large ones that can be taken away; among small ones it is all there is.
struct SpectrumValues {
  torch::Tensor projected;  // as they come; their squares sum up to the whole variance
  torch::Tensor corrected;  // with what is added to large ones taken away
};

// Bytes that a spectrum takes.
struct SpectrumBytes {
  int64_t held = 0;     // by what is accumulated
  int64_t working = 0;  // besides, while its values are computed
  int64_t adding = 0;   // besides, while rows are added
};

// The spectrum of one layer's features over a stream of samples.
class FeatureSpectrum {
 public:
  FeatureSpectrum(int64_t dims, const SpectrumOptions& options, uint64_t seed);

  // Whether anchor_to would make it more accurate.
  bool wants_anchors() const;
  // Before the first update: a few samples, [rows, dims].
  void anchor_to(const torch::Tensor& sample);
  // One without rows, with a sketch of another size and the same anchors, or without a sketch.
  FeatureSpectrum enlarged(const SpectrumOptions& options) const;

  // [rows, dims]
  void update(const torch::Tensor& rows) { add(reduced(rows)); }
  // The same in two steps: rows as the spectrum takes them, [rows, width]: chosen features or a
  // sketch, which is not finite where the rows are not; and adding them.
  torch::Tensor reduced(const torch::Tensor& rows) const;
  void add(const torch::Tensor& seen);
  // `other` was made and anchored alike.
  void merge(const FeatureSpectrum& other);

  SpectrumValues values() const;
  // Forgets what was accumulated but for how many rows there were.
  void release();
  // Deep copies of all that was accumulated.
  std::vector<torch::Tensor> state() const;

  int64_t rows() const;
  int64_t dims() const { return dims_; }
  // Of what the spectrum is computed: all features, those chosen, or their projections.
  int64_t width() const;
  bool is_sketched() const { return !sketch_.is_exact(); }
  int64_t anchors() const { return sketch_.anchors(); }
  bool has_rounded_anchors() const { return sketch_.has_rounded_anchors(); }
  const SpectrumOptions& options() const { return options_; }

  // At most, after so many samples.
  static SpectrumBytes bytes_for(int64_t dims, int64_t samples, const SpectrumOptions& options);

 private:
  void start_covariance();
  SpectrumValues values_of_gathered() const;
  SpectrumValues values_of_sketch() const;

  int64_t dims_;
  uint64_t seed_;
  SpectrumOptions options_;
  FeatureSketch sketch_;
  torch::Tensor chosen_;  // indices of features; undefined: all
  // The smaller side is cheaper: rows are gathered as long as they are fewer than the
  // width.
  std::vector<torch::Tensor> gathered_;
  std::optional<CovarianceAccumulator> covariance_;
  int64_t gathered_rows_ = 0;
  int64_t released_rows_ = 0;
};

}  // namespace kelvin
