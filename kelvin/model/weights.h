#pragma once

#include <filesystem>
#include <string>

#include "kelvin/model/model.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// Parameters and buffers by their names: the model's own tensors, not copies.
NamedTensors weights_of(const Model& model);

// Copies tensors of the same names, shapes and types; anything else is an Error that `where` opens.
void copy_weights(const NamedTensors& from, NamedTensors& to, const std::string& where);

// Parameters and buffers by their names, as safetensors.
void save_weights(const std::filesystem::path& path, const Model& model);

struct LoadOptions {
  bool reset_head = false;  // leaves the head as it is, for a network with other classes
  // Of a checkpoint that holds the weights and an average of them, the one that is not usual:
  // "state_dict_ema"; empty: state_dict, model_state_dict, model or net.
  std::string part = {};
};

// Loads weights that save_weights or somebody else's program wrote; names as in weight_names.h.
// Every parameter of the model must be in the file, and nothing else may be; shapes must be the
// model's, but for position embeddings of a square grid, which are interpolated; numbers must be
// finite, and are converted to the model's type (float64 is rounded).  Otherwise an Error, and the
// model is unchanged.  If the file holds several copies of the weights, returns a line that says
// which were taken; otherwise nothing.
std::string load_weights(const std::filesystem::path& path, Model& model,
                         const LoadOptions& options = {});

}  // namespace kelvin
