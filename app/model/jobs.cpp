#include "app/model/jobs.h"

namespace kelvin {

Registry<VerbEntry>& model_jobs() {
  static Registry<VerbEntry> registry("job of kelvin model");
  return registry;
}

}  // namespace kelvin
