#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace kelvin {

// A random map of `dims` numbers to `width` sums.
struct RowHash {
  int64_t dims = 0;
  int64_t width = 0;
  const float* signs = nullptr;     // [dims], of +1 and -1
  const int64_t* shifts = nullptr;  // in [0, width), one for each block of `width` numbers
};

// Adds each row of `rows` [count, dims] to its sums in `sums` [count, width], block after block,
// each rotated by its shift: numbers of one block never meet; two of different blocks do with a
// probability of one over width.  Its own file, because it is compiled for speed: one pass over all
// features of all layers.
void add_hashed_rows(const RowHash& hash, const float* rows, int64_t count, float* sums);

// rows [count, dims] - mean [dims], both float32, to the nearest bfloat16, ties to even: in one
// pass, of which no float32 copy is made.  What is not finite stays so.
torch::Tensor centred_rounding(const torch::Tensor& rows, const torch::Tensor& mean);

// A random linear map from rows of `dims` numbers to at most `size`, which nearly keeps lengths and
// angles, and with them the spectrum of everything it is shown.  Rows that are short enough stay as
// they are.  The map depends on dims, size and seed alone; each number is added, with a random
// sign, to one of the results, so that it costs one pass over the rows.
class FeatureSketch {
 public:
  FeatureSketch(int64_t dims, int64_t size, uint64_t seed);

  // The same map but for the directions in which `sample` [rows, dims] varies most, so many as
  // `anchors` and the sample allow: they are kept as they are, and only what is orthogonal to them
  // is sketched.  Since they hold most of the variance, large singular values become nearly exact.
  // Directions are those around the mean of the sample.
  FeatureSketch anchored(const torch::Tensor& sample, int64_t anchors) const;

  // With the same anchors and another size.
  FeatureSketch enlarged(int64_t size) const;

  // [rows, dims] to [rows, width], in float32; as they are if the sketch is exact.
  torch::Tensor apply(const torch::Tensor& rows) const;

  int64_t dims() const { return dims_; }
  int64_t width() const { return width_; }
  int64_t anchors() const { return anchors_.defined() ? anchors_.size(1) : 0; }
  bool is_exact() const { return width_ == dims_; }
  // Whether what rows have along anchors is multiplied in bfloat16.
  bool has_rounded_anchors() const {
    return anchors_.defined() && anchors_.scalar_type() == torch::kBFloat16;
  }
  // Two maps that give the same results, so that what was accumulated of them can be added.
  bool equals(const FeatureSketch& other) const;

 private:
  void draw();
  void keep(const torch::Tensor& anchors, const torch::Tensor& sample_mean);
  int64_t hash_width() const { return width_ - anchors(); }
  torch::Tensor hashed(const torch::Tensor& rows) const;
  torch::Tensor along_anchors(const torch::Tensor& rows) const;

  int64_t dims_;
  int64_t width_;
  uint64_t seed_;
  torch::Tensor signs_;          // [dims], of +1 and -1
  std::vector<int64_t> shifts_;  // of each block of dims, by how much it is rotated
  // [dims, anchors], orthonormal to their own precision, bfloat16 where that is multiplied faster;
  // undefined if there are none.
  torch::Tensor anchors_;
  torch::Tensor hashed_anchors_;      // [anchors, width - anchors]
  torch::Tensor sample_mean_;         // [dims], of what anchors come from
  torch::Tensor mean_along_anchors_;  // [anchors]
};

}  // namespace kelvin
