#pragma once

#include <filesystem>
#include <string>

#include "kelvin/representations/record.h"

namespace kelvin {

// What somebody else's program wrote about a network and a set of images: an npz with `logits`
// [samples, classes] and `labels` [samples], optionally `features`, `weight`, `bias` of the
// classifier, a scalar `temperature`, and what layers hand on as `layer/NAME` [samples, ...], in
// order of their names, numbers as numbers; without them the features are the only layer.
struct Dump {
  Record record;  // of the test split
  double temperature = 1;
};

struct DumpOptions {
  bool needs_labels = true;  // if not, labels are not even read: foreign ones mean other classes
  bool with_layers = false;
};

// Everything is finite, of matching shape, and labels are those of classes.
Dump read_dump(const std::filesystem::path& npz, const DumpOptions& options = {});

// Why weight and bias of a record are not those that made its logits from its features; empty if
// they may be, or are not all there.  `where` names the dump.
std::string classifier_caveat(const Record& record, const std::string& where);

}  // namespace kelvin
