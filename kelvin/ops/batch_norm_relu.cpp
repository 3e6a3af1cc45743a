#include "kelvin/ops/batch_norm_relu.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/batch_norm_rows.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kMapsLayout = torch::MemoryFormat::ChannelsLast;

struct Rows {
  int64_t count = 0;
  int64_t channels = 0;
};

Rows rows_of(const torch::Tensor& maps) {
  return {.count = maps.numel() / maps.size(1), .channels = maps.size(1)};
}

// Parts of rows that do not depend on the number of threads.
int64_t rows_of_a_part(const Rows& rows) {
  constexpr int64_t kFloats = 1 << 15;
  return std::max<int64_t>(kFloats / rows.channels, 1);
}

// Sums of `sum_part(begin, end, sums)` over all rows: [2, channels].
template <class SumPart>
std::vector<double> summed(const Rows& rows, const SumPart& sum_part) {
  const auto size = rows_of_a_part(rows);
  const auto parts = (rows.count + size - 1) / size;
  const auto width = 2 * rows.channels;
  std::vector<double> partial(static_cast<size_t>(parts * width));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (auto part = begin; part < end; ++part) {
      sum_part(part * size, std::min((part + 1) * size, rows.count), &partial[part * width]);
    }
  });
  std::vector<double> sums(partial.begin(), partial.begin() + width);
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < width; ++i) sums[i] += partial[part * width + i];
  }
  return sums;
}

template <class Work>
void for_rows(const Rows& rows, const Work& work) {
  parallel_for(0, rows.count, rows_of_a_part(rows), work);
}

// Calls `work` with a null pointer to what these maps are made of.
template <class Work>
auto for_pixels_of(const torch::Tensor& maps, const Work& work) {
  if (maps.scalar_type() == torch::kBFloat16) return work(static_cast<Bf16*>(nullptr));
  return work(static_cast<float*>(nullptr));
}

template <class Pixel>
Pixel* pixels(const torch::Tensor& maps) {
  return maps.defined() ? static_cast<Pixel*>(maps.data_ptr()) : nullptr;
}

// Of its first pixel.
std::vector<float> channels_of_one(const torch::Tensor& maps) {
  const auto first = maps.select(0, 0).select(1, 0).select(1, 0).to(torch::kFloat32).contiguous();
  return {first.data_ptr<float>(), first.data_ptr<float>() + first.numel()};
}

// What the maps of a batch are normalised by; all [channels].
struct Statistics {
  torch::Tensor mean;
  torch::Tensor inverse_std_dev;
  torch::Tensor scale;   // weight over standard deviation
  torch::Tensor offset;  // bias less mean times scale
};

Statistics statistics_of(const torch::Tensor& maps, const BatchNorm& norm) {
  const auto rows = rows_of(maps);
  const auto shift = channels_of_one(maps);  // near the mean, or squares would cancel
  const auto sums = for_pixels_of(maps, [&]<class Pixel>(Pixel*) {
    return summed(rows, [&](int64_t begin, int64_t end, double* part) {
      moments_of_rows(pixels<const Pixel>(maps), rows.channels, shift.data(), begin, end, part);
    });
  });
  Statistics result{.mean = torch::empty_like(norm.weight),
                    .inverse_std_dev = torch::empty_like(norm.weight),
                    .scale = torch::empty_like(norm.weight),
                    .offset = torch::empty_like(norm.weight)};
  const auto count = static_cast<double>(rows.count);
  for (int64_t c = 0; c < rows.channels; ++c) {
    const double distance = sums[c] / count;
    const double mean = static_cast<double>(shift[c]) + distance;
    const double variance = std::max(sums[rows.channels + c] / count - distance * distance, 0.0);
    const double inverse = 1 / std::sqrt(variance + norm.epsilon);
    const double scale = static_cast<double>(norm.weight.data_ptr<float>()[c]) * inverse;
    result.mean.data_ptr<float>()[c] = static_cast<float>(mean);
    result.inverse_std_dev.data_ptr<float>()[c] = static_cast<float>(inverse);
    result.scale.data_ptr<float>()[c] = static_cast<float>(scale);
    result.offset.data_ptr<float>()[c] =
        static_cast<float>(static_cast<double>(norm.bias.data_ptr<float>()[c]) - mean * scale);
    const auto update = [&](const torch::Tensor& running, double value) {
      auto& own = running.data_ptr<float>()[c];
      own = static_cast<float>((1 - norm.momentum) * static_cast<double>(own) +
                               norm.momentum * value);
    };
    update(norm.running_mean, mean);
    update(norm.running_variance, variance * count / std::max(count - 1, 1.0));
  }
  return result;
}

// The gradient of the maps is linear in that of the outputs and in the maps themselves.
struct Coefficients {
  std::vector<float> of_gradient;
  std::vector<float> of_x;
  std::vector<float> constant;
};

Coefficients coefficients_of(const std::vector<double>& sums, double count,
                             const torch::Tensor& scale, const torch::Tensor& inverse) {
  const auto channels = scale.numel();
  const auto size = static_cast<size_t>(channels);
  Coefficients result{std::vector<float>(size), std::vector<float>(size), std::vector<float>(size)};
  for (int64_t c = 0; c < channels; ++c) {
    const auto factor = static_cast<double>(scale.data_ptr<float>()[c]);
    const auto inverse_of_channel = static_cast<double>(inverse.data_ptr<float>()[c]);
    result.of_gradient[c] = static_cast<float>(factor);
    result.of_x[c] = static_cast<float>(-factor * inverse_of_channel * inverse_of_channel *
                                        sums[channels + c] / count);
    result.constant[c] = static_cast<float>(-factor * sums[c] / count);
  }
  return result;
}

// `added` in the type and layout of the maps.
torch::Tensor as_maps(const torch::Tensor& added, const torch::Tensor& maps) {
  return added.to(maps.scalar_type()).contiguous(kMapsLayout);
}

// relu(maps * scale + offset + added), by channels.
torch::Tensor mapped(const torch::Tensor& maps, const torch::Tensor& scale,
                     const torch::Tensor& offset, const torch::Tensor& added) {
  const auto rows = rows_of(maps);
  auto result = torch::empty_like(maps);
  for_pixels_of(maps, [&]<class Pixel>(Pixel*) {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      norm_relu_rows(pixels<const Pixel>(maps), rows.channels,
                     {.scale = scale.data_ptr<float>(), .offset = offset.data_ptr<float>()},
                     pixels<const Pixel>(added), begin, end, pixels<Pixel>(result));
    });
  });
  return result;
}

class BatchNormRelu : public torch::autograd::Function<BatchNormRelu> {
 public:
  // Weight and bias stand for themselves, so that they get gradients.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& maps,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const OptionalTensor& added, const BatchNorm& norm) {
    const auto by = statistics_of(maps, {.weight = weight,
                                         .bias = bias,
                                         .running_mean = norm.running_mean,
                                         .running_variance = norm.running_variance,
                                         .momentum = norm.momentum,
                                         .epsilon = norm.epsilon});
    const auto more = added ? as_maps(*added, maps) : torch::Tensor();
    auto result = mapped(maps, by.scale, by.offset, more);
    context->save_for_backward({maps, by.mean, by.inverse_std_dev, by.scale, by.offset,
                                more.defined() ? result : torch::Tensor()});
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("batch_norm_relu");
    const auto saved = context->get_saved_variables();
    const auto& maps = saved.at(0);
    const auto& inverse = saved.at(2);
    const auto& scale = saved.at(3);
    const auto& output = saved.at(5);
    const auto rows = rows_of(maps);
    const auto gradients = results.at(0).to(maps.scalar_type()).contiguous(kMapsLayout);
    // What was added gets the same gradient, so it is written down.
    const auto masked = output.defined() ? torch::empty_like(maps) : torch::Tensor();
    auto gradient = torch::empty_like(maps);
    const auto sums = for_pixels_of(maps, [&]<class Pixel>(Pixel*) {
      const NormReluGradient<Pixel> each{
          .x = pixels<const Pixel>(maps),
          .gradient = pixels<const Pixel>(gradients),
          .y = pixels<const Pixel>(output),
          .channels = rows.channels,
          .map = {.scale = scale.data_ptr<float>(), .offset = saved.at(4).data_ptr<float>()},
          .mean = saved.at(1).data_ptr<float>()};
      auto both = summed(rows, [&](int64_t begin, int64_t end, double* part) {
        gradient_sums_of_rows(each, begin, end, pixels<Pixel>(masked), part);
      });
      const auto by = coefficients_of(both, static_cast<double>(rows.count), scale, inverse);
      for_rows(rows, [&](int64_t begin, int64_t end) {
        gradient_rows(each,
                      {.of_gradient = by.of_gradient.data(),
                       .of_x = by.of_x.data(),
                       .constant = by.constant.data()},
                      pixels<const Pixel>(masked), begin, end, pixels<Pixel>(gradient));
      });
      return both;
    });
    auto of_weight = torch::empty_like(scale);
    auto of_bias = torch::empty_like(scale);
    for (int64_t c = 0; c < rows.channels; ++c) {
      of_bias.data_ptr<float>()[c] = static_cast<float>(sums[c]);
      of_weight.data_ptr<float>()[c] = static_cast<float>(
          sums[rows.channels + c] * static_cast<double>(inverse.data_ptr<float>()[c]));
    }
    return {gradient, of_weight, of_bias, masked, torch::Tensor()};
  }
};

bool is_vector(const torch::Tensor& tensor, int64_t size) {
  return tensor.defined() && tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 &&
         tensor.is_contiguous() && tensor.numel() == size;
}

}  // namespace

bool suits_batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm) {
  const auto type = maps.scalar_type();
  if (!maps.is_cpu() || (type != torch::kFloat32 && type != torch::kBFloat16) || maps.dim() != 4 ||
      maps.numel() == 0 || !maps.is_contiguous(kMapsLayout)) {
    return false;
  }
  const auto channels = maps.size(1);
  return maps.numel() > channels && is_vector(norm.weight, channels) &&
         is_vector(norm.bias, channels) && is_vector(norm.running_mean, channels) &&
         is_vector(norm.running_variance, channels);
}

namespace {

void check_arguments(const char* function, const torch::Tensor& maps, const BatchNorm& norm,
                     const torch::Tensor& added) {
  check(suits_batch_norm_relu(maps, norm), function,
        ": needs float32 or bfloat16 maps in channels-last, more than one pixel of each "
        "channel and a weight, bias, mean and variance for each, got maps ",
        maps.sizes());
  check(!added.defined() || added.sizes() == maps.sizes(), function, ": what is added must be ",
        maps.sizes(), ", is ", added.defined() ? added.sizes() : torch::IntArrayRef());
}

}  // namespace

torch::Tensor batch_norm_relu(const torch::Tensor& maps, const BatchNorm& norm,
                              const torch::Tensor& added) {
  check_arguments("batch_norm_relu", maps, norm, added);
  return BatchNormRelu::apply(maps, norm.weight, norm.bias, if_defined(added), norm);
}

torch::Tensor running_norm_relu(const torch::Tensor& maps, const BatchNorm& norm,
                                const torch::Tensor& added) {
  check_arguments("running_norm_relu", maps, norm, added);
  torch::NoGradGuard no_grad;
  const auto mean = norm.running_mean.to(torch::kFloat64);
  const auto variance = norm.running_variance.to(torch::kFloat64);
  const auto scale = norm.weight.to(torch::kFloat64) / (variance + norm.epsilon).sqrt();
  const auto offset = norm.bias.to(torch::kFloat64) - mean * scale;
  return mapped(maps, scale.to(torch::kFloat32), offset.to(torch::kFloat32),
                added.defined() ? as_maps(added, maps) : torch::Tensor());
}

}  // namespace kelvin
