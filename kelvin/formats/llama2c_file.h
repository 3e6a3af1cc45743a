#pragma once

#include <cstdint>
#include <string>

#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// The sizes of a language model of the Llama type.
struct LlamaShape {
  int64_t width = 0;
  int64_t hidden = 0;  // between the two halves of a feed-forward layer
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;  // as many as heads, or fewer that are shared
  int64_t vocabulary = 0;
  int64_t context = 0;  // tokens that it was trained on
};

struct LlamaCheckpoint {
  LlamaShape shape = {};
  // Under the names that transformers gives them: "model.layers.0.self_attn.q_proj.weight"; the
  // pairs of numbers that are rotated together stand side by side.  Without "lm_head.weight" the
  // embedding is the classifier.
  StoredTensors weights = {};
};

// A checkpoint of llama2.c as its run.c reads it (version 0): seven int32 that tell the shape, then
// float32 numbers.  An Error unless the file has just as many of them as the shape says.
LlamaCheckpoint parse_llama2c(std::string file, const std::string& where);

}  // namespace kelvin
