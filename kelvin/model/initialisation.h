#pragma once

#include <string>

#include "kelvin/model/model.h"

namespace kelvin {

// How the weights of linear and convolutional layers are drawn.
enum class InitScheme {
  usual,   // as the network's authors did; "default" in configs
  he,      // N(0, 2 / fan in), biases 0
  xavier,  // N(0, 2 / (fan in + fan out)), biases 0
  fixed,   // N(0, std_dev^2) whatever the width, biases 0
};

// "default", "he", "xavier", "fixed"; anything else is an Error.
InitScheme init_scheme_of(const std::string& name);

struct InitOptions {
  InitScheme scheme = InitScheme::usual;
  double std_dev = 0.02;    // of the scheme `fixed`
  double scale = 1;         // multiplies weights and biases of all layers
  double last_scale = 1;    // multiplies the logits: see Head::scale_logits
  double last_uniform = 0;  // a > 0: the last weight is drawn from U(-a, a), its bias is 0
};

// Draws the weights of a freshly built model anew, or scales them, as the options say.  The last
// layer is the one that makes the logits.  Draws from the global generator.
void initialise(Model& model, const InitOptions& options);

}  // namespace kelvin
