#pragma once

#include <torch/types.h>

namespace kelvin {

// Throws unless a loss can be made of these: logits [samples, classes] and at least one of each,
// labels [samples] of whole numbers in [0, classes), a temperature that is one number above 0.
// `where` opens the message.
void check_loss_arguments(const char* where, const torch::Tensor& logits,
                          const torch::Tensor& labels, const torch::Tensor& temperature);

// What a loss says of a batch.
struct LossValues {
  torch::Tensor loss;           // mean over the samples; differentiable
  torch::Tensor sample_losses;  // [samples]; not differentiable, as all below
  torch::Tensor entropies;      // [samples], of softmax_T(logits), in nats
  torch::Tensor predictions;    // [samples], the class of the largest logit, as int64
};

struct CrossEntropyOptions {
  double smoothing = 0;  // this fraction of each target is spread evenly over all classes
};

// Cross-entropy of softmax(logits / temperature): logits [samples, classes], labels [samples],
// temperature a single number above 0, which may be learnt.  One pass over the logits yields all
// values and the gradient.  Finite for finite logits of any size; on the
// CPU not finite as soon as one logit is not.  Values are float64 for logits of that type and
// float32 for all others.  Can be differentiated once.
LossValues tempered_cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                                  const torch::Tensor& temperature,
                                  const CrossEntropyOptions& options = {});

// log softmax(logits / temperature) of LibTorch's parts, differentiable in both: what losses are
// made of that have no kernel of their own.  In float32 at least.  Gradients stay finite where
// quotients would not: they end at -1e30.
torch::Tensor tempered_logs(const torch::Tensor& logits, const torch::Tensor& temperature);

// The values of a loss whose softmax has these logarithms.
LossValues described_loss(const torch::Tensor& sample_losses, const torch::Tensor& logs,
                          const torch::Tensor& logits);

}  // namespace kelvin
