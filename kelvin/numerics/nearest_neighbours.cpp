#include "kelvin/numerics/nearest_neighbours.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/kernels/distances.h"
#include "kelvin/numerics/neighbour_index.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kQueriesAtOnce = 480;  // of one thread: rows are read once for all of them
constexpr int64_t kRowsAtOnce = 1024;    // so that what is compared stays in the caches
constexpr int64_t kQueriesInMemory = 8192;
constexpr size_t kDistancesAtOnce = 32;
constexpr double kFar = 1e15;  // in lengths of rows: squares leave single precision

using Queries = std::vector<NeighbourQuery>;
using AllHits = std::vector<std::vector<ProductHit>>;

struct IsLarger {
  bool operator()(const ProductHit& a, const ProductHit& b) const { return a.product > b.product; }
};

double squared_distance(const double* a, const double* b, int64_t dims) {
  std::array<double, 4> sums = {};
  int64_t i = 0;
  for (; i + 4 <= dims; i += 4) {
    for (int64_t lane = 0; lane < 4; ++lane) {
      const double difference = a[i + lane] - b[i + lane];
      sums[static_cast<size_t>(lane)] += difference * difference;
    }
  }
  for (; i < dims; ++i) sums[0] += (a[i] - b[i]) * (a[i] - b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double kth_smallest(std::vector<double>& numbers, int64_t k) {
  std::nth_element(numbers.begin(), numbers.begin() + (k - 1), numbers.end());
  return numbers[static_cast<size_t>(k - 1)];
}

// The search for the neighbours of some queries, by one thread.
class Search {
 public:
  Search(const NeighbourIndex& index, const NeighbourPoints& points)
      : index_(index), points_(points), has_axes_(index.axes.defined()) {}

  void run(int64_t begin, int64_t end, double* out) const {
    Queries queries;
    queries.reserve(static_cast<size_t>(end - begin));
    for (int64_t place = begin; place < end; ++place) {
      const auto length = points_.lengths.data_ptr<double>()[place];
      if (length > kFar * index_.longest) {
        out[place] = distance_by_all(place);
      } else {
        queries.push_back({.place = place, .length = length, .margins = {index_, length}});
      }
    }
    guess_thresholds(queries);
    finish(first_round(queries, out), out);
  }

 private:
  // A threshold that about as many rows reach as the index has candidates.
  void guess_thresholds(Queries& queries) const {
    const auto& sample = index_.packed_sample;
    if (sample.count == 0) return;
    auto hits = hits_of(sample, queries);
    const auto wanted = index_.candidates * sample.count / index_.rows.count();
    const auto rank = std::min(wanted, sample.count - 1);
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto place = hits[i].begin() + rank;
      std::nth_element(hits[i].begin(), place, hits[i].end(), IsLarger());
      queries[i].threshold = place->product;
    }
  }

  // Returns queries whose guess was too high: nearer rows may have been left out.
  Queries first_round(Queries& queries, double* out) const {
    find_by_few(queries);
    Queries unfinished;
    for (auto& query : queries) {
      const auto guess = query.threshold;
      measure_hits(query, has_axes_);
      query.threshold = query.needed_product(index_.k, query.margins.few);
      if (query.threshold >= guess) {
        out[query.place] = exact_distance(query);
      } else {
        unfinished.push_back(std::move(query));
      }
    }
    return unfinished;
  }

  // By thresholds that are sure, and by what is cheaper for each.
  void finish(Queries unfinished, double* out) const {
    Queries by_few;
    Queries by_all;
    const auto is_cheap = are_few_left(unfinished);
    for (size_t i = 0; i < unfinished.size(); ++i) {
      (is_cheap[i] ? by_few : by_all).push_back(std::move(unfinished[i]));
    }
    find_by_few(by_few);
    find_by_all(by_all);
    for (auto* queries : {&by_few, &by_all}) {
      for (auto& query : *queries) {
        measure_hits(query, has_axes_ && queries == &by_few);
        out[query.place] = exact_distance(query);
      }
    }
  }

  // Whether so few rows reach the threshold that comparing all coordinates of all rows costs more,
  // judged by a sample of the rows.
  std::vector<bool> are_few_left(const Queries& queries) const {
    std::vector<bool> result(queries.size(), true);
    if (!has_axes_) return result;
    const auto hits = hits_of(index_.packed_sample, queries);
    const auto dims = static_cast<double>(index_.rows.dims());
    const auto more = static_cast<double>(index_.rows.refined.size(1));
    for (size_t i = 0; i < queries.size(); ++i) {
      auto refined = hits[i];
      for (auto& hit : refined) hit.row = index_.sample[static_cast<size_t>(hit.row)];
      refine(queries[i].place, refined, 0);
      const auto needed = queries[i].needed_closeness(index_.k);
      const auto measured = std::count_if(refined.begin(), refined.end(),
                                          [&](const auto& hit) { return hit.product >= needed; });
      const auto cost =
          more * static_cast<double>(refined.size()) + dims * static_cast<double>(measured);
      result[i] = kCostOfRefining * cost < dims * static_cast<double>(index_.packed_sample.count);
    }
    return result;
  }

  AllHits hits_of(const PackedRows& rows, const Queries& queries) const {
    AllHits hits(queries.size());
    const auto packed = packed_reduced(queries);
    append_products_above(rows, 0, rows.count, packed, thresholds_of(queries), hits.data());
    return hits;
  }

  // Rows that reach the thresholds, also those of refined points if there are any.
  void find_by_few(Queries& queries) const {
    if (queries.empty()) return;
    const auto packed = packed_reduced(queries);
    const auto thresholds = thresholds_of(queries);
    AllHits hits(queries.size());
    std::vector<size_t> seen(queries.size(), 0);
    for (int64_t row = 0; row < index_.rows.count(); row += kRowsAtOnce) {
      const auto end = std::min(row + kRowsAtOnce, index_.rows.count());
      append_products_above(index_.packed, row, end, packed, thresholds, hits.data());
      for (size_t i = 0; has_axes_ && i < queries.size(); ++i) {
        refine(queries[i].place, hits[i], seen[i]);
        seen[i] = hits[i].size();
      }
    }
    replace_hits(queries, hits);
  }

  void find_by_all(Queries& queries) const {
    if (queries.empty()) return;
    for (auto& query : queries) {
      query.threshold = query.needed_product(index_.k, query.margins.all);
    }
    std::vector<float> vectors;
    vectors.reserve(queries.size() * static_cast<size_t>(points_.dims() + 1));
    for (const auto& query : queries) append(vectors, points_.float_row(query.place), 1);
    const auto packed =
        packed_queries(vectors.data(), static_cast<int64_t>(queries.size()), points_.dims() + 1);
    const auto thresholds = thresholds_of(queries);
    AllHits hits(queries.size());
    std::vector<size_t> seen(queries.size(), 0);
    for (int64_t row = 0; row < index_.rows.count(); row += kRowsAtOnce) {
      const auto end = std::min(row + kRowsAtOnce, index_.rows.count());
      append_products_above(whole_rows(row, end), 0, end - row, packed, thresholds, hits.data());
      for (size_t i = 0; i < queries.size(); ++i) {
        for (; seen[i] < hits[i].size(); ++seen[i]) {
          hits[i][seen[i]].row += static_cast<int32_t>(row);
        }
      }
    }
    replace_hits(queries, hits);
  }

  static void replace_hits(Queries& queries, AllHits& hits) {
    for (size_t i = 0; i < queries.size(); ++i) {
      queries[i].forget();
      queries[i].hits.swap(hits[i]);
    }
  }

  static std::vector<float> thresholds_of(const Queries& queries) {
    std::vector<float> thresholds;
    thresholds.reserve(queries.size());
    for (const auto& query : queries) thresholds.push_back(query.threshold);
    return thresholds;
  }

  PackedQueries packed_reduced(const Queries& queries) const {
    const auto width = points_.reduced.size(1);
    std::vector<float> vectors;
    vectors.reserve(queries.size() * static_cast<size_t>(width));
    for (const auto& query : queries) {
      const auto* from = points_.reduced.data_ptr<float>() + query.place * width;
      vectors.insert(vectors.end(), from, from + width);
    }
    return packed_queries(vectors.data(), static_cast<int64_t>(queries.size()), width);
  }

  // With all coordinates, as reduced rows are with a few.
  PackedRows whole_rows(int64_t begin, int64_t end) const {
    const auto* lengths = index_.rows.lengths.data_ptr<double>();
    std::vector<float> vectors;
    vectors.reserve(static_cast<size_t>((end - begin) * (points_.dims() + 1)));
    for (int64_t row = begin; row < end; ++row) {
      append(vectors, index_.rows.float_row(row),
             static_cast<float>(lengths[row] * lengths[row] / -2));
    }
    return packed_rows(vectors.data(), end - begin, points_.dims() + 1);
  }

  void append(std::vector<float>& vectors, const float* coordinates, float last) const {
    vectors.insert(vectors.end(), coordinates, coordinates + points_.dims());
    vectors.push_back(last);
  }

  // Puts minus the squared distance of more coordinates in place of products, from one hit on.
  void refine(int64_t place, std::vector<ProductHit>& hits, size_t from) const {
    const auto& rows = index_.rows;
    std::array<float, kDistancesAtOnce> squares;
    for (; from < hits.size(); from += squares.size()) {
      const auto count = std::min(squares.size(), hits.size() - from);
      squared_distances(points_.refined_row(place), rows.refined.data_ptr<float>(),
                        rows.refined.size(1), hits.data() + from, static_cast<int64_t>(count),
                        squares.data());
      for (size_t i = 0; i < count; ++i) hits[from + i].product = -squares[i];
    }
  }

  // The most promising ones first; the others only while they may be nearer than those.
  void measure_hits(NeighbourQuery& query, bool is_refined) const {
    auto& hits = query.hits;
    const auto first = std::min(static_cast<size_t>(index_.k), hits.size());
    if (first == 0) return;
    const auto rest = hits.begin() + static_cast<int64_t>(first);
    std::nth_element(hits.begin(), rest - 1, hits.end(), IsLarger());
    const auto needed = [&] {
      if (is_refined) return query.needed_closeness(index_.k);
      return query.needed_product(index_.k, std::max(query.margins.few, query.margins.all));
    };
    std::vector<ProductHit> block(hits.begin(), rest);
    measure(block, query);
    block.clear();
    auto threshold = needed();
    for (auto hit = rest; hit != hits.end(); ++hit) {
      if (hit->product >= threshold) block.push_back(*hit);
      if (block.size() < kDistancesAtOnce && hit + 1 != hits.end()) continue;
      measure(block, query);
      block.clear();
      threshold = needed();
    }
  }

  void measure(const std::vector<ProductHit>& hits, NeighbourQuery& query) const {
    std::vector<float> squares(hits.size());
    squared_distances(points_.float_row(query.place), index_.rows.floats.data_ptr<float>(),
                      index_.rows.dims(), hits.data(), static_cast<int64_t>(hits.size()),
                      squares.data());
    for (size_t i = 0; i < hits.size(); ++i) {
      query.add(hits[i].row, std::sqrt(static_cast<double>(squares[i])), index_.k);
    }
  }

  // Of those measured, what is surely nearer than the k-th nearest is counted; what may be the k-th
  // is measured in double precision.
  double exact_distance(const NeighbourQuery& query) const {
    const auto kth = query.nearest.front();
    const auto margin = 2.02 * query.margins.of(kth);
    auto k = index_.k;
    std::vector<double> squares;
    for (const auto& each : query.measured) {
      if (each.distance < kth - margin) --k;
      if (std::abs(each.distance - kth) > margin) continue;
      squares.push_back(squared_distance(points_.double_row(query.place),
                                         index_.rows.double_row(each.row), points_.dims()));
    }
    return std::sqrt(kth_smallest(squares, k));
  }

  double distance_by_all(int64_t place) const {
    std::vector<double> squares;
    squares.reserve(static_cast<size_t>(index_.rows.count()));
    for (int64_t row = 0; row < index_.rows.count(); ++row) {
      squares.push_back(
          squared_distance(points_.double_row(place), index_.rows.double_row(row), points_.dims()));
    }
    return std::sqrt(kth_smallest(squares, index_.k));
  }

  const NeighbourIndex& index_;
  const NeighbourPoints& points_;
  bool has_axes_;
};

torch::Tensor checked_vectors(const char* what, const torch::Tensor& vectors) {
  check(vectors.dim() == 2, "NearestNeighbours: ", what, " must be [", what, ", dims], got ",
        vectors.sizes());
  auto doubles = vectors.to(torch::kFloat64).contiguous();
  check(torch::isfinite(doubles.sum()).item<bool>() || torch::isfinite(doubles).all().item<bool>(),
        "NearestNeighbours: ", what, " must be finite, have a NaN or an infinity");
  return doubles;
}

}  // namespace

NearestNeighbours::NearestNeighbours(const torch::Tensor& rows, int64_t k) {
  const auto doubles = checked_vectors("rows", rows);
  check(k >= 1 && k <= doubles.size(0), "NearestNeighbours: k must be in [1, ", doubles.size(0),
        "], got ", k);
  index_ = std::make_shared<const NeighbourIndex>(doubles, k);
}

torch::Tensor NearestNeighbours::distances(const torch::Tensor& queries) const {
  check(index_ != nullptr, "NearestNeighbours: has no rows");
  const auto doubles = checked_vectors("queries", queries);
  check(doubles.size(1) == index_->rows.dims(), "NearestNeighbours: queries must have ",
        index_->rows.dims(), " dims, got ", doubles.size(1));
  const auto count = doubles.size(0);
  auto result = torch::empty({count}, torch::kFloat64);
  for (int64_t begin = 0; begin < count; begin += kQueriesInMemory) {
    const auto end = std::min(begin + kQueriesInMemory, count);
    const auto points = index_->points_of(doubles.slice(0, begin, end));
    auto* out = result.data_ptr<double>() + begin;
    const auto pieces = (points.count() + kQueriesAtOnce - 1) / kQueriesAtOnce;
    parallel_for_tasks(pieces, [&](int64_t piece) {
      const auto first = piece * kQueriesAtOnce;
      Search(*index_, points).run(first, std::min(first + kQueriesAtOnce, points.count()), out);
    });
  }
  return result;
}

int64_t NearestNeighbours::k() const { return index_ == nullptr ? 0 : index_->k; }

int64_t NearestNeighbours::principal_coordinates() const {
  return index_ == nullptr ? 0 : index_->few;
}

}  // namespace kelvin
