#include <torch/types.h>

#include "kelvin/core/check.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/softmax.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

constexpr int64_t kViews = 2;
constexpr int64_t kMostDimensions = 65536;
constexpr double kLeastNorm = 1e-30;  // of an embedding that has a direction

struct InfoNceOptions {
  bool normalises = true;    // embeddings to length 1: products are cosines
  int64_t dimensions = 128;  // of an embedding, as in the paper
};

void check_views(const torch::Tensor& embeddings, const torch::Tensor& images,
                 const torch::Tensor& temperature) {
  check(embeddings.dim() == 2 && images.dim() == 1 && embeddings.size(0) == images.size(0),
        "info_nce: needs embeddings [views, dimensions] and images [views], got ",
        embeddings.sizes(), " and ", images.sizes());
  check(embeddings.numel() > 0, "info_nce: needs at least one image and one dimension, got ",
        embeddings.sizes());
  check(embeddings.is_floating_point(), "info_nce: embeddings must be floating-point numbers, are ",
        embeddings.scalar_type());
  check(torch::isIntegralType(images.scalar_type(), /*includeBool=*/false),
        "info_nce: images must be whole numbers, are ", images.scalar_type());
  check(temperature.numel() == 1 && temperature.is_floating_point(),
        "info_nce: the temperature must be one floating-point number, is ",
        temperature.scalar_type(), " ", temperature.sizes());
  check_temperature("info_nce", temperature.item<double>());
}

// `same` [views]: how many show the same image.
void check_pairs(const torch::Tensor& images, const torch::Tensor& same) {
  const auto wrong = (same != kViews).nonzero();
  if (wrong.numel() == 0) return;
  const auto first = wrong[0].item<int64_t>();
  check(false, "info_nce: each image must have ", kViews, " views, image ",
        images[first].item<int64_t>(), " has ", same[first].item<int64_t>());
}

// To length 1; what has no direction stays what it is.
torch::Tensor directions_of(const torch::Tensor& embeddings) {
  const auto norms = embeddings.norm(2, /*dim=*/1, /*keepdim=*/true);
  return embeddings / torch::where(norms > kLeastNorm, norms, torch::ones_like(norms));
}

// Each row of a square matrix without its entry on the diagonal: in the order of memory there are
// as many numbers as rows from one of these to the next.
torch::Tensor without_diagonal(const torch::Tensor& square) {
  const auto rows = square.size(0);
  return square.contiguous()
      .view({rows * rows})
      .narrow(0, 1, rows * rows - 1)
      .view({rows - 1, rows + 1})
      .narrow(1, 0, rows)
      .reshape({rows, rows - 1});
}

// The candidates of a view are all others; which of them shows the same image is to be told.
LossValues info_nce(const torch::Tensor& embeddings, const torch::Tensor& images,
                    const torch::Tensor& temperature, const InfoNceOptions& options) {
  check_views(embeddings, images, temperature);
  const auto views = embeddings.size(0);
  const auto shown = images.to(torch::kInt64).unsqueeze(0).expand({views, views});
  check_pairs(images, (shown == shown.t()).sum(1));
  // In double precision: cosines near 1 differ in digits that float32 does not have, and T divides
  // what is left of them.  It costs little beside the network.
  const auto exact = embeddings.to(torch::kFloat64);
  const auto rows = options.normalises ? directions_of(exact) : exact;
  const auto similarities = without_diagonal(rows.matmul(rows.t()));
  const auto candidates = without_diagonal(shown);
  const auto positives =
      (candidates == images.to(torch::kInt64).unsqueeze(1)).to(torch::kInt64).argmax(1, true);
  const auto logs = tempered_logs(similarities, temperature);
  auto values = described_loss(-logs.gather(1, positives).squeeze(1), logs, similarities);
  values.predictions = candidates.gather(1, values.predictions.unsqueeze(1)).squeeze(1);
  const auto type = embeddings.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  for (auto* tensor : {&values.loss, &values.sample_losses, &values.entropies}) {
    *tensor = tensor->to(type);
  }
  return values;
}

Loss make_info_nce(Settings& settings) {
  InfoNceOptions options;
  settings.read("normalise", options.normalises);
  settings.read("dimensions", options.dimensions);
  check(options.dimensions >= 2 && options.dimensions <= kMostDimensions,
        settings.full_name("dimensions"), ": must be from 2 to ", kMostDimensions, ", got ",
        options.dimensions);
  return {.function =
              [options](const torch::Tensor& embeddings, const torch::Tensor& images,
                        const torch::Tensor& temperature) {
                return info_nce(embeddings, images, temperature, options);
              },
          .views = kViews,
          .outputs = options.dimensions};
}

const bool info_nce_registered = losses().add(
    "info_nce",
    {
        .summary = "NT-Xent: cross-entropy of softmax(cosines / T) for telling a view's other view "
                   "from those of all other images; without labels",
        .reference = "SimCLR, arXiv 2002.05709; InfoNCE, arXiv 1807.03748",
        .make = make_info_nce,
    });

}  // namespace
}  // namespace kelvin
