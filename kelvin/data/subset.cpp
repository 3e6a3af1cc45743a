#include "kelvin/data/subset.h"

#include <torch/types.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/data/batches.h"

namespace kelvin {
namespace {

// A whole number above 0, or 0 if `text` is none.
int64_t count_in(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? count : 0;
}

std::vector<int64_t> all_below(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

// For each class its images, in an order drawn from `seed`.
std::vector<std::vector<int64_t>> shuffled_by_class(const torch::Tensor& labels, int64_t classes,
                                                    uint64_t seed) {
  std::vector<std::vector<int64_t>> by_class(static_cast<size_t>(classes));
  const auto* label_of = labels.data_ptr<int64_t>();
  for (const auto index : epoch_order(seed, 0, labels.size(0))) {
    by_class.at(static_cast<size_t>(label_of[index])).push_back(index);
  }
  return by_class;
}

LabelledFiles select_files(const LabelledFiles& files, const std::vector<int64_t>& indices) {
  LabelledFiles chosen{.class_names = files.class_names};
  for (const auto index : indices) {
    chosen.paths.push_back(files.paths.at(static_cast<size_t>(index)));
    chosen.labels.push_back(files.labels.at(static_cast<size_t>(index)));
  }
  return chosen;
}

}  // namespace

Images select(const Images& images, const std::vector<int64_t>& indices) {
  const auto rows = torch::tensor(indices, torch::kInt64);
  Images chosen{.pixels = {}, .labels = images.labels.index_select(0, rows)};
  if (images.files) {
    chosen.files = std::make_shared<ImageFiles>(select_files(images.files->files(), indices),
                                                images.files->options());
  } else {
    chosen.pixels = images.pixels.index_select(0, rows);
  }
  return chosen;
}

std::vector<int64_t> balanced_sample(const torch::Tensor& labels, int64_t classes, int64_t count,
                                     uint64_t seed) {
  if (count >= labels.size(0)) return all_below(labels.size(0));
  const auto by_class = shuffled_by_class(labels, classes, seed);
  std::vector<int64_t> chosen;
  // Round after round one image of each class, so that small classes only lower the others' luck.
  for (size_t round = 0; static_cast<int64_t>(chosen.size()) < count; ++round) {
    for (const auto& members : by_class) {
      if (round >= members.size() || static_cast<int64_t>(chosen.size()) == count) continue;
      chosen.push_back(members[round]);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int64_t> chosen_classes(const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& class_names) {
  const auto total = static_cast<int64_t>(class_names.size());
  const int64_t count = wanted.size() == 1 ? count_in(wanted.front()) : 0;
  if (count > 0) {
    check(count >= 2 && count <= total, "data.classes: must be from 2 to ", total, ", got ", count);
    return all_below(count);
  }
  check(wanted.size() >= 2,
        "data.classes: needs a number of classes or the names of two or more, got '",
        join(wanted, ","), "'");
  std::vector<int64_t> chosen;
  for (const auto& name : wanted) {
    const auto found = std::find(class_names.begin(), class_names.end(), name);
    if (found == class_names.end()) {
      const auto guess = nearest_name(name, class_names);
      check(false, "data.classes: no class named '", name, "'",
            guess.empty() ? "" : "; did you mean '" + guess + "'?");
    }
    const auto number = found - class_names.begin();
    check(std::find(chosen.begin(), chosen.end(), number) == chosen.end(), "data.classes: '", name,
          "' is named twice");
    chosen.push_back(number);
  }
  return chosen;
}

Images of_classes(const Images& images, const std::vector<int64_t>& chosen) {
  if (images.size() == 0) return images;
  const auto most = images.labels.max().item<int64_t>();
  std::vector<int64_t> place(static_cast<size_t>(std::max(most + 1, int64_t{1})), -1);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] <= most) place.at(static_cast<size_t>(chosen[i])) = static_cast<int64_t>(i);
  }
  std::vector<int64_t> indices;
  std::vector<int64_t> labels;
  const auto* label_of = images.labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto label = place.at(static_cast<size_t>(label_of[i]));
    if (label < 0) continue;
    indices.push_back(i);
    labels.push_back(label);
  }
  auto kept = select(images, indices);
  kept.labels = torch::tensor(labels, torch::kInt64);
  return kept;
}

HeldOut hold_out(const Images& images, int64_t classes, int64_t count, uint64_t seed) {
  check(count < images.size(), "data.validation_samples: must be below the ", images.size(),
        " training images, got ", count);
  const auto held_out = balanced_sample(images.labels, classes, count, seed);
  std::vector<int64_t> kept;
  const auto everyone = all_below(images.size());
  std::set_difference(everyone.begin(), everyone.end(), held_out.begin(), held_out.end(),
                      std::back_inserter(kept));
  return {.kept = select(images, kept), .held_out = select(images, held_out)};
}

}  // namespace kelvin
