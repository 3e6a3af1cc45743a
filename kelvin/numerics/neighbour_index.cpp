#include "kelvin/numerics/neighbour_index.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/numerics/top_eigenvectors.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kSample = 1024;  // of many rows
constexpr int64_t kKnown = 8192;   // rows that principal axes are found for
constexpr int64_t kPilots = 64;    // of these, queries that their number is chosen for
constexpr std::array<int64_t, 7> kFew = {16, 24, 32, 48, 64, 80, 96};
constexpr int64_t kMore = 127;  // with the length of the rest as many as vectors like

// The length of what leading coordinates leave of vectors.
torch::Tensor lengths_left(const torch::Tensor& lengths, const torch::Tensor& coordinates) {
  return (lengths.square() - coordinates.square().sum(1)).clamp_min(0).sqrt();
}

// Both beside each other.
torch::Tensor with_rest(const torch::Tensor& lengths, const torch::Tensor& coordinates) {
  const auto rest = lengths_left(lengths, coordinates).unsqueeze(1);
  return torch::cat({coordinates, rest}, 1);
}

uint64_t hash_of(const double* row, int64_t dims) {
  uint64_t hash = 0;
  for (int64_t i = 0; i < dims; ++i) {
    hash = (std::rotl(hash, 23) ^ std::bit_cast<uint64_t>(row[i])) * 0x9e3779b97f4a7c15U;
  }
  return hash;
}

// More than k copies of a row change nothing, and of constant rows there may be very many.
torch::Tensor without_needless_copies(const torch::Tensor& rows, int64_t k) {
  struct Copies {
    int64_t first = 0;
    int64_t count = 0;
  };
  const auto dims = rows.size(1);
  const auto count = static_cast<size_t>(rows.size(0));
  const auto row = [&](int64_t place) { return rows.data_ptr<double>() + place * dims; };
  std::vector<uint64_t> hashes(count);
  for_row_blocks(rows.size(0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) hashes[static_cast<size_t>(i)] = hash_of(row(i), dims);
  });
  std::unordered_map<uint64_t, Copies> seen;
  seen.reserve(count);
  std::vector<int64_t> kept;
  kept.reserve(count);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    auto& copies =
        seen.try_emplace(hashes[static_cast<size_t>(i)], Copies{.first = i}).first->second;
    const bool is_copy = copies.first == i || std::equal(row(i), row(i) + dims, row(copies.first));
    if (is_copy && ++copies.count > k) continue;
    kept.push_back(i);
  }
  if (kept.size() == count) return rows;
  return rows.index_select(0, torch::tensor(kept, torch::kInt64));
}

// Places evenly spread over `count`.
torch::Tensor spread(int64_t count, int64_t wanted) {
  const auto step = static_cast<double>(count) / static_cast<double>(wanted);
  return (torch::arange(wanted, torch::kFloat64) * step).to(torch::kInt64);
}

}  // namespace

NeighbourIndex::NeighbourIndex(const torch::Tensor& vectors, int64_t neighbours) : k(neighbours) {
  const auto kept = without_needless_copies(vectors, k);
  const auto count = kept.size(0);
  origin = kept.mean(0);
  const auto lengths = row_numbers(count, [&](int64_t begin, int64_t end) {
    return (kept.slice(0, begin, end) - origin).norm(2, 1);
  });
  longest = lengths.max().item<double>();
  check(std::isfinite(longest), "NearestNeighbours: distances between rows must be finite");
  if (longest > 0) scale = std::ldexp(1., -std::ilogb(longest));
  longest *= scale;
  candidates = 2 * k;
  const bool are_many = count > 4 * kSample;
  if (are_many && kept.size(1) > kFew.front() && longest > 0) choose_axes(kept);
  rows = points(kept, /*are_rows=*/true);
  packed = packed_rows(rows.reduced.data_ptr<float>(), count, rows.reduced.size(1));
  if (!are_many) return;
  const auto places = spread(count, kSample);
  sample.assign(places.data_ptr<int64_t>(), places.data_ptr<int64_t>() + kSample);
  const auto sampled = rows.reduced.index_select(0, places);
  packed_sample = packed_rows(sampled.data_ptr<float>(), kSample, sampled.size(1));
}

NeighbourPoints NeighbourIndex::points_of(const torch::Tensor& vectors) const {
  return points(vectors, /*are_rows=*/false);
}

NeighbourPoints NeighbourIndex::points(const torch::Tensor& vectors, bool are_rows) const {
  const auto count = vectors.size(0);
  const auto width = axes.defined() ? few + 2 : vectors.size(1) + 1;
  NeighbourPoints result{.doubles = vectors};
  result.floats = torch::empty(vectors.sizes(), torch::kFloat32);
  result.reduced = torch::empty({count, width}, torch::kFloat32);
  result.lengths = torch::empty({count}, torch::kFloat64);
  if (axes.defined()) result.refined = torch::empty({count, axes.size(1) + 1}, torch::kFloat32);
  for_row_blocks(count, [&](int64_t begin, int64_t end) {
    const auto centred = (vectors.slice(0, begin, end) - origin).mul_(scale);
    const auto lengths = centred.norm(2, 1);
    result.lengths.slice(0, begin, end).copy_(lengths);
    result.floats.slice(0, begin, end).copy_(centred);
    const auto reduced = result.reduced.slice(0, begin, end);
    reduced.select(1, width - 1)
        .copy_(are_rows ? lengths.square() / -2 : torch::ones_like(lengths));
    if (!axes.defined()) {
      reduced.slice(1, 0, width - 1).copy_(centred);
      return;
    }
    const auto coordinates = centred.matmul(axes);
    result.refined.slice(0, begin, end).copy_(with_rest(lengths, coordinates));
    reduced.slice(1, 0, width - 1).copy_(with_rest(lengths, coordinates.slice(1, 0, few)));
  });
  return result;
}

// What would have been cheapest for a few of the rows.
void NeighbourIndex::choose_axes(const torch::Tensor& vectors) {
  const auto count = vectors.size(0);
  const auto dims = vectors.size(1);
  const auto places = spread(count, std::min(count, kKnown));
  const auto known = (vectors.index_select(0, places) - origin).mul_(scale);
  const auto fraction = static_cast<double>(known.size(0)) / static_cast<double>(count);
  const auto all_axes = top_eigenvectors(known.t().matmul(known), std::min(dims, kMore)).vectors;
  const auto lengths = known.norm(2, 1);
  const auto pilots = spread(known.size(0), kPilots);
  const auto squares =
      lengths.index_select(0, pilots).square().unsqueeze(1) + lengths.square().unsqueeze(0);
  const auto distances = squares - 2 * known.index_select(0, pilots).matmul(known.t());
  // The nearest of each is the row itself.
  const auto rank =
      std::min(2 + static_cast<int64_t>(fraction * static_cast<double>(k)), known.size(0));
  const auto bounds = std::get<0>(distances.kthvalue(rank, 1, /*keepdim=*/true));
  const auto coordinates = known.matmul(all_axes);
  auto lowest = static_cast<double>(count * dims);
  for (const auto width : kFew) {
    if (width >= dims) break;
    const auto reduced = with_rest(lengths, coordinates.slice(1, 0, width));
    const auto least = squares - 2 * reduced.index_select(0, pilots).matmul(reduced.t());
    const auto left = (least <= bounds).sum().item<double>() / kPilots / fraction;
    const auto cost = static_cast<double>(count * width) + kCostOfRefining * kMore * left;
    if (cost >= lowest) continue;
    lowest = cost;
    few = width;
    candidates = k + static_cast<int64_t>(1.5 * left);
  }
  if (few > 0) axes = all_axes;
}

}  // namespace kelvin
