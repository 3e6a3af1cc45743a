#pragma once

namespace kelvin {

// Of a measure that looks at logits and labels and at nothing else of a record: of a dump nothing
// else has to be read for it.
class UsesLogitsAlone {
 public:
  virtual ~UsesLogitsAlone() = default;
};

}  // namespace kelvin
