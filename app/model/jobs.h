#pragma once

#include "app/verb.h"

namespace kelvin {

// What `kelvin model` can do: `kelvin model NAME ...`.
Registry<VerbEntry>& model_jobs();

}  // namespace kelvin
