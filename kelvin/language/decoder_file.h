#pragma once

#include <filesystem>

#include "kelvin/language/decoder.h"
#include "kelvin/language/tokenizer.h"

namespace kelvin {

// A checkpoint of llama2.c; or a folder with config.json and model.safetensors as transformers
// writes them for a Llama, with weights in any floating type.
Decoder read_decoder(const std::filesystem::path& path);

// The tokenizer.bin of llama2.c that `decoder` was trained with: an Error unless it has as many
// pieces as the decoder has tokens.
Tokenizer read_tokenizer(const std::filesystem::path& path, const Decoder& decoder);

}  // namespace kelvin
