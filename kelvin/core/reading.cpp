#include "kelvin/core/reading.h"

namespace kelvin {

nlohmann::ordered_json fields_of(const Reading& reading) {
  nlohmann::ordered_json fields;
  fields["name"] = reading.name;
  fields["value"] = reading.value;
  if (!reading.layer.empty()) fields["layer"] = reading.layer;
  if (!reading.split.empty()) fields["split"] = reading.split;
  if (!reading.detector.empty()) fields["detector"] = reading.detector;
  if (!reading.ood.empty()) fields["ood"] = reading.ood;
  if (reading.index) fields["index"] = *reading.index;
  if (reading.interval) {
    fields["low"] = reading.interval->low;
    fields["high"] = reading.interval->high;
  }
  return fields;
}

}  // namespace kelvin
