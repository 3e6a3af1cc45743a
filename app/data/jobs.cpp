#include "app/data/jobs.h"

namespace kelvin {

Registry<VerbEntry>& data_jobs() {
  static Registry<VerbEntry> registry("job of kelvin data");
  return registry;
}

}  // namespace kelvin
