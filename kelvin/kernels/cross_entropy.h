#pragma once

#include <cstdint>

namespace kelvin {

// What the cross-entropy of one sample comes to, in double precision whatever the logits are.
struct RowValues {
  double loss = 0;
  double entropy = 0;      // of softmax(row / temperature), in nats
  double slope = 0;        // of the loss in the temperature
  int64_t prediction = 0;  // the first of the largest logits
};

template <class Scalar>
struct CrossEntropyRows {
  const Scalar* logits = nullptr;   // [samples, classes], without gaps
  const int64_t* labels = nullptr;  // [samples], all in [0, classes)
  int64_t classes = 0;
  double temperature = 1;  // above 0
  double smoothing = 0;
  double weight = 1;            // of a sample in the gradient: one over their number
  Scalar* gradient = nullptr;   // [samples, classes], of the weighted losses; null: not wanted
  RowValues* values = nullptr;  // [samples]
};

// Fills in gradient and values of the samples [begin, end): the kernel of
// tempered_cross_entropy.  Bits depend neither on the samples beside one nor on the processor's
// vectors.  A row with an entry that is not finite gets NaNs.
void cross_entropy_rows(const CrossEntropyRows<float>& rows, int64_t begin, int64_t end);
void cross_entropy_rows(const CrossEntropyRows<double>& rows, int64_t begin, int64_t end);

}  // namespace kelvin
