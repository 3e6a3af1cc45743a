#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/model/record.h"

namespace kelvin {

// What somebody else's program wrote about a network and a set of images: an npz with `logits`
// [samples, classes] and `labels` [samples] or [samples, 1], optionally `features`, `weight`,
// `bias` of the classifier, a scalar `temperature`, and what layers hand on as `layer/NAME`
// [samples, ...], in order of their names, numbers as numbers; without them the features are the
// only layer.  Floating numbers of 16 bits are widened to float32, which is exact; labels may be of
// any type that holds whole numbers.
struct Dump {
  Record record;  // of the test split
  double temperature = 1;
  // Which arrays were dumped in 16 bits, and as what: {"logits", "bfloat16"}.
  std::map<std::string, std::string> narrow = {};
};

struct DumpOptions {
  bool needs_labels = true;     // if not, labels are not even read: OOD ones mean other classes
  bool with_classifier = true;  // `features`, `weight` and `bias`
  bool with_layers = false;
};

// Everything is finite, of matching shape, and labels are those of classes.  Arrays that are not
// asked for are not read.
Dump read_dump(const std::filesystem::path& npz, const DumpOptions& options = {});

// Why weight and bias of a record are not those that made its logits from its features; empty if
// they may be, or are not all there.  `where` names the dump.
std::string classifier_caveat(const Record& record, const std::string& where);

// Adds to a dump that was read without them `weight`, `bias` and, unless they are not wanted,
// `features`; then the layers, which are the features if there are no others.
void add_classifier(Dump& dump, const std::filesystem::path& npz, bool with_features = true);
void add_layers(Dump& dump, const std::filesystem::path& npz);

// Says in what precision the arrays were dumped: in the definitions, where that is less than
// float32, and to who looks on, where it had to be guessed.
void note_precision(const Dump& dump, Readings& readings);
void tell_of_guesses(const Dump& dump, const std::filesystem::path& npz, const RunContext& context);

}  // namespace kelvin
