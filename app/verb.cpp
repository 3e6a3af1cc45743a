#include "app/verb.h"

namespace kelvin {

Registry<VerbEntry>& verbs() {
  static Registry<VerbEntry> registry("verb");
  return registry;
}

}  // namespace kelvin
