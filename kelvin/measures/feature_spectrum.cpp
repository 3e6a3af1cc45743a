#include "kelvin/measures/feature_spectrum.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/numerics/gram.h"

namespace kelvin {
namespace {

constexpr int64_t kSketchBlock = 4096;  // features of a sketch that are multiplied at a time

// A sketch as large as the features leaves them as they are.
int64_t sketch_size(int64_t dims, const SpectrumOptions& options) {
  return options.protocol == SpectrumProtocol::sketch ? options.sketch : dims;
}

int64_t width_for(int64_t dims, const SpectrumOptions& options) {
  switch (options.protocol) {
    case SpectrumProtocol::sketch:
      return std::min(dims, options.sketch);
    case SpectrumProtocol::tunnel:
      return std::min(dims, kTunnelFeatures);
    default:
      return dims;
  }
}

torch::Tensor random_features(int64_t dims, int64_t count, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto order = torch::randperm(dims, generator, torch::kInt64);
  return std::get<0>(order.narrow(0, 0, count).sort());
}

// `added` is what the tail adds to each eigenvalue, its fraction outside the anchors times `tail`,
// as if everything outside them came after it.  What comes before an eigenvalue adds nothing, and
// close to the tail eigenvalues are the tail: nothing is taken away.
torch::Tensor without_tail(const torch::Tensor& eigenvalues, const torch::Tensor& added,
                           double tail) {
  if (tail <= 0) return eigenvalues;
  const auto outside = added / tail * eigenvalues;
  const auto after = 1 - outside.cumsum(0) / outside.sum().clamp_min(tail);
  const auto squares = eigenvalues.square();
  const auto corrected = eigenvalues - added * after * squares / (squares + tail * tail);
  return std::get<0>(corrected.clamp_min(0).sort(/*dim=*/0, /*descending=*/true));
}

}  // namespace

FeatureSpectrum::FeatureSpectrum(int64_t dims, const SpectrumOptions& options, uint64_t seed)
    : dims_(dims), seed_(seed), options_(options), sketch_(dims, sketch_size(dims, options), seed) {
  const auto width = width_for(dims, options);
  if (options.protocol == SpectrumProtocol::tunnel && width < dims) {
    chosen_ = random_features(dims, width, seed);
  }
}

void FeatureSpectrum::start_covariance() {
  using Products = CovarianceAccumulator::Products;
  covariance_.emplace(width(), is_sketched() ? Products::fast : Products::exact);
  for (const auto& rows : gathered_) covariance_->update(rows);
  gathered_.clear();
  gathered_rows_ = 0;
}

bool FeatureSpectrum::wants_anchors() const { return is_sketched() && options_.anchors > 0; }

void FeatureSpectrum::anchor_to(const torch::Tensor& sample) {
  check(rows() == 0, "FeatureSpectrum: anchors must be there before the first row, ", rows(),
        " rows are");
  if (wants_anchors()) sketch_ = sketch_.anchored(sample, options_.anchors);
}

FeatureSpectrum FeatureSpectrum::enlarged(const SpectrumOptions& options) const {
  FeatureSpectrum result(dims_, options, seed_);
  result.sketch_ = sketch_.enlarged(sketch_size(dims_, options));
  return result;
}

torch::Tensor FeatureSpectrum::reduced(const torch::Tensor& rows) const {
  check(rows.dim() == 2 && rows.size(1) == dims_, "FeatureSpectrum: rows must be [rows, ", dims_,
        "], got ", rows.sizes());
  return chosen_.defined() ? rows.index_select(1, chosen_) : sketch_.apply(rows);
}

void FeatureSpectrum::add(const torch::Tensor& seen) {
  check(seen.dim() == 2 && seen.size(1) == width(), "FeatureSpectrum: rows must be [rows, ",
        width(), "] once looked at, got ", seen.sizes());
  if (covariance_) {
    covariance_->update(seen);
    return;
  }
  // The sum of a row is not finite as soon as one number is not.
  check(torch::isfinite(seen.sum(1)).all().item<bool>(),
        "FeatureSpectrum: rows must be finite, got a NaN or an infinity");
  // Features that were not projected are the network's own memory.
  gathered_.push_back(is_sketched() || chosen_.defined() ? seen : seen.clone());
  gathered_rows_ += seen.size(0);
  if (gathered_rows_ >= width()) start_covariance();
}

void FeatureSpectrum::merge(const FeatureSpectrum& other) {
  check(released_rows_ == 0 && other.released_rows_ == 0,
        "FeatureSpectrum: can be merged only as long as it holds its rows");
  check(dims_ == other.dims_ && seed_ == other.seed_ && sketch_.equals(other.sketch_),
        "FeatureSpectrum: only what was projected alike can be merged; show both the same sample");
  for (const auto& rows : other.gathered_) {
    gathered_.push_back(rows);
    gathered_rows_ += rows.size(0);
  }
  const bool has_covariance = covariance_ || other.covariance_ || gathered_rows_ >= width();
  if (!has_covariance) return;
  if (!covariance_) {
    start_covariance();
  } else {
    for (const auto& rows : gathered_) covariance_->update(rows);
    gathered_.clear();
    gathered_rows_ = 0;
  }
  if (other.covariance_) covariance_->merge(*other.covariance_);
}

// From the products of samples, a block of features at a time.
SpectrumValues FeatureSpectrum::values_of_gathered() const {
  const auto rows = torch::cat(gathered_);
  const auto count = std::max<int64_t>(1, rows.size(0) - 1);
  const auto centred = [&](const torch::Tensor& columns) {
    const auto doubles = columns.to(torch::kFloat64);
    return doubles - doubles.mean(0);
  };
  if (!is_sketched()) {
    const auto products = parallel_gram(
        rows.size(1), rows.size(0),
        [&](int64_t begin, int64_t end) { return centred(rows.slice(1, begin, end)).t(); });
    const auto squares = torch::linalg_eigvalsh(products).flip(0).clamp_min(0);
    const auto values = squares.slice(0, 0, count).sqrt();
    return {.projected = values, .corrected = values};
  }
  // What is sketched is known to a few digits only: single precision does for its products.
  const auto products_of = [&](const torch::Tensor& columns) {
    auto products = torch::zeros({rows.size(0), rows.size(0)}, torch::kFloat32);
    for (const auto& block : columns.split(kSketchBlock, 1)) {
      const auto floats = centred(block).to(torch::kFloat32);
      products.addmm_(floats, floats.t());
    }
    return products.to(torch::kFloat64);
  };
  const auto rest = products_of(rows.slice(1, anchors()));
  const auto all = products_of(rows.slice(1, 0, anchors())) + rest;
  const auto descending = [&](const torch::Tensor& products) {
    return torch::linalg_eigvalsh(products).flip(0).slice(0, 0, count);
  };
  const auto eigenvalues = descending(all);
  const auto squares = eigenvalues.clamp_min(0);
  const double tail =
      rest.diagonal().sum().item<double>() / static_cast<double>(width() - anchors());
  // The part of each eigenvalue that is not anchored is how fast it falls as all of that does:
  // eigenvectors would tell it too, and take several times as long.
  constexpr double kStep = 1e-3;
  const auto outside = (eigenvalues - descending(all - kStep * rest)) / kStep;
  const auto added = (tail * outside / squares).nan_to_num(0, 0, 0).clamp(0, tail);
  return {.projected = squares.sqrt(), .corrected = without_tail(squares, added, tail).sqrt()};
}

// What the tail adds is a multiple of the identity on all but the anchors.
SpectrumValues FeatureSpectrum::values_of_sketch() const {
  auto whole = *covariance_;
  whole.finish_block();
  const auto projected = whole.singular_values();
  const auto scatter = whole.scatter();
  const auto rest = scatter.diagonal().slice(0, anchors());
  const double tail = rest.sum().item<double>() / static_cast<double>(rest.size(0));
  rest.sub_(tail);
  const auto squares = projected.square();
  // In half the time: of what is taken away a few digits are known anyway.
  const auto lowered =
      torch::linalg_eigvalsh(scatter.to(torch::kFloat32)).flip(0).slice(0, 0, squares.size(0));
  const auto added = (squares - lowered).clamp(0, tail);
  return {.projected = projected, .corrected = without_tail(squares, added, tail).sqrt()};
}

SpectrumValues FeatureSpectrum::values() const {
  check(rows() > released_rows_, "FeatureSpectrum: no rows were shown");
  if (!covariance_) return values_of_gathered();
  if (is_sketched()) return values_of_sketch();
  const auto values = covariance_->singular_values();
  return {.projected = values, .corrected = values};
}

std::vector<torch::Tensor> FeatureSpectrum::state() const {
  if (!covariance_) return {gathered_.empty() ? torch::empty({0}) : torch::cat(gathered_)};
  auto whole = *covariance_;
  whole.finish_block();
  return {torch::tensor(whole.rows()), whole.mean(), whole.scatter()};
}

void FeatureSpectrum::release() {
  released_rows_ = rows();
  gathered_.clear();
  gathered_rows_ = 0;
  covariance_.reset();
}

int64_t FeatureSpectrum::rows() const {
  return released_rows_ + gathered_rows_ + (covariance_ ? covariance_->rows() : 0);
}

int64_t FeatureSpectrum::width() const { return width_for(dims_, options_); }

SpectrumBytes FeatureSpectrum::bytes_for(int64_t dims, int64_t samples,
                                         const SpectrumOptions& options) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  constexpr auto kDouble = static_cast<int64_t>(sizeof(double));
  const auto width = width_for(dims, options);
  if (samples >= width) {
    // A copy with all rows in it, of a sketch one that is corrected, and what eigenvalues are found
    // in; the last rows in float64, and what their product adds.
    const auto scatter = width * width * kDouble;
    const bool is_sketch = width < dims && options.protocol == SpectrumProtocol::sketch;
    return {.held = CovarianceAccumulator::bytes_for(width),
            .working = (is_sketch ? 4 : 3) * scatter +
                       2 * CovarianceAccumulator::kBlockRows * width * kDouble,
            .adding = CovarianceAccumulator::bytes_of_adding(width)};
  }
  const auto rows = samples * width * kFloat;
  const auto matrix = samples * samples * kDouble;
  const bool is_sketched = width < dims && options.protocol == SpectrumProtocol::sketch;
  // All rows in one piece, a block of them centred, and products; of a sketch also those of its
  // parts.
  const auto products = is_sketched ? 5 * matrix + kSketchBlock * samples * (2 * kDouble + kFloat)
                                    : matrix + parallel_gram_bytes(width, samples);
  return {.held = rows, .working = rows + products, .adding = 0};
}

}  // namespace kelvin
