#include "app/bench/jobs.h"

namespace kelvin {

Registry<VerbEntry>& bench_jobs() {
  static Registry<VerbEntry> registry("job of kelvin bench");
  return registry;
}

}  // namespace kelvin
