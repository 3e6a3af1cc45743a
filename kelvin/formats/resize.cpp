#include "kelvin/formats/resize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kelvin/core/check.h"

// Pillow's arithmetic, step by step (its Resample.c): weights in double precision, rounded to fixed
// point; the rows are shrunk first, to bytes, then the columns.  What a pixel becomes depends on
// whole numbers alone from there on, so that vectors of any width give the same bytes.

namespace kelvin {
namespace {

constexpr int kPrecision = 22;  // bits of a weight after the point
constexpr int32_t kHalf = 1 << (kPrecision - 1);
constexpr int64_t kRgbChannels = 3;

// The weights of all output points along one axis.
struct Weights {
  int64_t taps = 0;                   // stored per point; those beyond its count are zero
  std::vector<int64_t> first = {};    // of the source's pixels, per point
  std::vector<int64_t> count = {};    // of the source's pixels, per point
  std::vector<int32_t> weights = {};  // [points, taps]
};

double triangle(double distance) { return std::max(0.0, 1.0 - std::abs(distance)); }

int64_t rounded(double number) { return static_cast<int64_t>(std::floor(number + 0.5)); }

// The output points [first, first + count) of an axis of `points` of them.
struct Points {
  int64_t points = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// `begin` and `end` are single precision because Pillow's are.
Weights make_weights(int64_t source, float begin, float end, const Points& wanted) {
  const double scale = static_cast<double>(end - begin) / static_cast<double>(wanted.points);
  const double support = std::max(scale, 1.0);
  Weights axis;
  axis.taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  axis.weights.assign(static_cast<size_t>(wanted.count * axis.taps), 0);
  std::vector<double> exact(static_cast<size_t>(axis.taps));
  for (int64_t point = 0; point < wanted.count; ++point) {
    const double centre = begin + (static_cast<double>(wanted.first + point) + 0.5) * scale;
    const auto first = std::max<int64_t>(rounded(centre - support), 0);
    const auto last = std::min<int64_t>(rounded(centre + support), source);
    double sum = 0;
    for (int64_t i = first; i < last; ++i) {
      const double distance = static_cast<double>(i) - centre + 0.5;
      const double weight = triangle(distance * (1.0 / support));
      exact[static_cast<size_t>(i - first)] = weight;
      sum += weight;
    }
    for (int64_t i = 0; i < last - first; ++i) {
      const double share = sum != 0.0 ? exact[static_cast<size_t>(i)] / sum : 0.0;
      axis.weights[static_cast<size_t>(point * axis.taps + i)] =
          static_cast<int32_t>(rounded(share * (1 << kPrecision)));
    }
    axis.first.push_back(first);
    axis.count.push_back(last - first);
  }
  return axis;
}

// GCC's vectors: whatever instructions the machine has, the numbers are the same.
template <int kLength>
using Ints [[gnu::vector_size(kLength * 4)]] = int32_t;
template <int kLength>
using Bytes [[gnu::vector_size(kLength)]] = uint8_t;

// Four or eight bytes, widened.  GCC makes single instructions of a shuffle with zeros for four and
// of a loop for eight, but not the other way round.
template <int kLength>
[[gnu::always_inline]] inline void load_bytes(const uint8_t* bytes, Ints<kLength>& wide) {
  if constexpr (kLength == 4) {
    int32_t four = 0;
    std::memcpy(&four, bytes, sizeof(four));
    const auto zeros = Bytes<16>{};
    const auto apart =
        __builtin_shufflevector(std::bit_cast<Bytes<16>>(Ints<4>{four, 0, 0, 0}), zeros, 0, 16, 16,
                                16, 1, 16, 16, 16, 2, 16, 16, 16, 3, 16, 16, 16);
    wide = std::bit_cast<Ints<4>>(apart);
  } else {
    for (int i = 0; i < kLength; ++i) wide[i] = bytes[i];
  }
}

template <int kLength>
[[gnu::always_inline]] inline void add_weighted(Ints<kLength>& sums, const uint8_t* bytes,
                                                int32_t weight) {
  Ints<kLength> wide = {};
  load_bytes<kLength>(bytes, wide);
  sums += wide * weight;
}

// Rounded weights may add up to a little more than one, hence the limit.
template <int kLength>
[[gnu::always_inline]] inline void put_bytes(const Ints<kLength>& sums, uint8_t* out) {
  Ints<kLength> values = sums >> kPrecision;
  values = values > 255 ? Ints<kLength>{} + 255 : values;
  Bytes<kLength * 4> bytes;
  std::memcpy(&bytes, &values, sizeof(bytes));
  Bytes<kLength> low;  // of each number its lowest byte
  if constexpr (kLength == 4) {
    low = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12);
  } else {
    low = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 16, 20, 24, 28);
  }
  std::memcpy(out, &low, sizeof(low));
}

constexpr int kRowsAtOnce = 4;
using RowPointers = std::array<const uint8_t*, kRowsAtOnce>;
using RowOutputs = std::array<uint8_t*, kRowsAtOnce>;

// Reads and writes a pixel as four bytes, so there must be one byte more behind each row.
[[gnu::always_inline]] inline void resize_rows(const RowPointers& rows, const Weights& axis,
                                               const RowOutputs& out) {
  const auto points = static_cast<int64_t>(axis.first.size());
  for (int64_t point = 0; point < points; ++point) {
    const auto index = static_cast<size_t>(point);
    const auto* weights = axis.weights.data() + point * axis.taps;
    const auto offset = axis.first[index] * kRgbChannels;
    const auto count = axis.count[index];
    Ints<4> sums[kRowsAtOnce];
    for (auto& sum : sums) sum = Ints<4>{} + kHalf;
    for (int64_t tap = 0; tap < count; ++tap) {
      for (size_t row = 0; row < kRowsAtOnce; ++row) {
        add_weighted<4>(sums[row], rows[row] + offset + tap * kRgbChannels, weights[tap]);
      }
    }
    for (size_t row = 0; row < kRowsAtOnce; ++row) {
      put_bytes<4>(sums[row], out[row] + point * kRgbChannels);
    }
  }
}

// The weighted sum of `count` rows, `stride` bytes apart.
[[gnu::always_inline]] inline void mix_rows(const uint8_t* rows, int64_t stride,
                                            const int32_t* weights, int64_t count, uint8_t* out,
                                            int64_t length) {
  constexpr int kBlock = 8;
  int64_t at = 0;
  for (; at + kBlock <= length; at += kBlock) {
    auto sums = Ints<kBlock>{} + kHalf;
    for (int64_t tap = 0; tap < count; ++tap) {
      add_weighted<kBlock>(sums, rows + tap * stride + at, weights[tap]);
    }
    put_bytes<kBlock>(sums, out + at);
  }
  for (; at < length; ++at) {
    int32_t sum = kHalf;
    for (int64_t tap = 0; tap < count; ++tap) sum += rows[tap * stride + at] * weights[tap];
    out[at] = static_cast<uint8_t>(std::min(sum >> kPrecision, 255));
  }
}

// All that the passes over the pixels need.
struct Job {
  const Weights& columns;
  const Weights& rows;
  std::vector<const uint8_t*> source;  // the rows used, each with a readable byte behind it
  std::vector<uint8_t> narrowed;       // [rows used, stride]
  int64_t stride;
  uint8_t* out;
};

[[gnu::always_inline]] inline void run_passes(Job& job) {
  const auto used = static_cast<int64_t>(job.source.size());
  for (int64_t row = 0; row < used; row += kRowsAtOnce) {
    RowPointers rows;
    RowOutputs out;
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const auto at = std::min(row + i, used - 1);  // the last one is done again, to the same bytes
      rows[static_cast<size_t>(i)] = job.source[static_cast<size_t>(at)];
      out[static_cast<size_t>(i)] = job.narrowed.data() + at * job.stride;
    }
    resize_rows(rows, job.columns, out);
  }
  const auto length = static_cast<int64_t>(job.columns.first.size()) * kRgbChannels;
  for (size_t row = 0; row < job.rows.first.size(); ++row) {
    const auto first = job.rows.first[row] - job.rows.first.front();
    mix_rows(job.narrowed.data() + first * job.stride, job.stride,
             job.rows.weights.data() + static_cast<int64_t>(row) * job.rows.taps,
             job.rows.count[row], job.out + static_cast<int64_t>(row) * length, length);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void run_passes_with_avx2(Job& job) { run_passes(job); }
[[gnu::target("sse4.1")]] void run_passes_with_sse4(Job& job) { run_passes(job); }
#endif

void run_passes_for_this_machine(Job& job) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return run_passes_with_avx2(job);
  if (__builtin_cpu_supports("sse4.1")) return run_passes_with_sse4(job);
#endif
  run_passes(job);
}

// Positive inside of [0, size], after the rounding to single precision.
bool is_range(double begin, double length, int64_t size) {
  const auto first = static_cast<float>(begin);
  const auto last = static_cast<float>(begin + length);
  return first >= 0 && last > first && last <= static_cast<float>(size);
}

void check_room(int64_t width, int64_t height, std::span<const uint8_t> rgb) {
  const auto room = static_cast<int64_t>(rgb.size());
  check(width > 0 && height > 0 && room / width / height == kRgbChannels &&
            room % (width * height) == 0,
        "resize: must write at least one pixel, 3 bytes each, got ", width, "x", height, " and ",
        room, " bytes");
}

void check_picture(const Picture& picture) {
  const auto given = static_cast<int64_t>(picture.rgb.size());
  check(picture.width > 0 && picture.height > 0 &&
            given / picture.width / picture.height == kRgbChannels &&
            given % (picture.width * picture.height) == 0,
        "resize: a picture of ", picture.width, "x", picture.height,
        " must have 3 bytes per pixel and at least one, got ", given, " bytes");
}

void resample(const Picture& picture, const Weights& columns, const Weights& rows,
              std::span<uint8_t> rgb) {
  const auto width = static_cast<int64_t>(columns.first.size());
  const auto first = rows.first.front();
  const auto last = rows.first.back() + rows.count.back();
  const auto row_bytes = picture.width * kRgbChannels;
  Job job{.columns = columns,
          .rows = rows,
          .source = {},
          .narrowed = {},
          .stride = width * kRgbChannels + 1,
          .out = rgb.data()};
  for (int64_t row = first; row < last; ++row) {
    job.source.push_back(picture.rgb.data() + row * row_bytes);
  }
  // Behind the picture's last row there is no byte to read.
  std::vector<uint8_t> last_row(job.source.back(), job.source.back() + row_bytes);
  last_row.push_back(0);
  job.source.back() = last_row.data();
  job.narrowed.resize(static_cast<size_t>((last - first) * job.stride));
  run_passes_for_this_machine(job);
}

}  // namespace

void resize(const Picture& picture, const Box& box, int64_t width, int64_t height,
            std::span<uint8_t> rgb) {
  check_picture(picture);
  check(
      is_range(box.left, box.width, picture.width) && is_range(box.top, box.height, picture.height),
      "resize: the box must lie inside of the picture of ", picture.width, "x", picture.height,
      ", got ", box.width, "x", box.height, " at ", box.left, ", ", box.top);
  check_room(width, height, rgb);
  resample(picture,
           make_weights(picture.width, static_cast<float>(box.left),
                        static_cast<float>(box.left + box.width), {width, 0, width}),
           make_weights(picture.height, static_cast<float>(box.top),
                        static_cast<float>(box.top + box.height), {height, 0, height}),
           rgb);
}

void resize_window(const Picture& picture, const PictureSize& full, const Window& window,
                   std::span<uint8_t> rgb) {
  check_picture(picture);
  check(window.left >= 0 && window.top >= 0 && window.width <= full.width - window.left &&
            window.height <= full.height - window.top,
        "resize: the window must lie inside of ", full.width, "x", full.height, ", got ",
        window.width, "x", window.height, " at ", window.left, ", ", window.top);
  check_room(window.width, window.height, rgb);
  resample(picture,
           make_weights(picture.width, 0, static_cast<float>(picture.width),
                        {full.width, window.left, window.width}),
           make_weights(picture.height, 0, static_cast<float>(picture.height),
                        {full.height, window.top, window.height}),
           rgb);
}

}  // namespace kelvin
