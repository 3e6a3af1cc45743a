#include "kelvin/language/decoder_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/llama2c_file.h"
#include "kelvin/model/tensors_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t{16} << 30;

Decoder decoder_of_llama2c(const fs::path& path) {
  const auto where = path.string();
  const auto checkpoint = parse_llama2c(read_stored_file(path, kMostBytes), where);
  NamedTensors parameters;
  for (const auto& stored : checkpoint.weights.tensors) {
    auto tensor = torch::empty(stored.shape, torch::kFloat32);
    std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    parameters[stored.name] = tensor;
  }
  DecoderShape shape;
  static_cast<LlamaShape&>(shape) = checkpoint.shape;
  return Decoder::from(shape, std::move(parameters), where);
}

// transformers has the first numbers of all pairs of a head before the second ones.
torch::Tensor with_pairs_side_by_side(const torch::Tensor& weight, int64_t head_width) {
  return weight.unflatten(0, {-1, 2, head_width / 2}).transpose(1, 2).flatten(0, 2);
}

int64_t whole_field(const JsonFields& fields, const std::string& key, int64_t most) {
  const auto value = fields.whole(key);
  check(value >= 1 && value <= most, fields.place_of(key), ": must be from 1 to ", most, ", is ",
        value);
  return value;
}

// Other models have tensors of the same names and shapes, and compute something else with them.
void check_is_llama(const nlohmann::ordered_json& config, const std::string& where) {
  const auto check_field = [&](const char* key, const char* wanted) {
    check(!config.contains(key) || config.at(key) == wanted, where, ": ", key, " must be ", wanted,
          ", is ", shown_text(config.contains(key) ? config.at(key).dump() : ""));
  };
  check_field("model_type", "llama");
  check_field("hidden_act", "silu");
}

DecoderShape shape_in_config(const fs::path& path) {
  const auto object = load_json_object(path);
  const JsonFields fields(object, path.string());
  constexpr int64_t kMost = 1 << 20;
  const auto whole = [&](const char* key) { return whole_field(fields, key, kMost); };
  DecoderShape shape;
  shape.width = whole("hidden_size");
  shape.hidden = whole("intermediate_size");
  shape.layers = whole("num_hidden_layers");
  shape.heads = whole("num_attention_heads");
  shape.key_heads = fields.has("num_key_value_heads") ? whole("num_key_value_heads") : shape.heads;
  shape.vocabulary = whole("vocab_size");
  shape.context = whole("max_position_embeddings");
  check_is_llama(object, path.string());
  // Newer versions of transformers have both in an object of their own.
  const auto& rotary =
      object.contains("rope_parameters") ? fields.object("rope_parameters") : object;
  const JsonFields of_rotary(rotary, path.string());
  if (of_rotary.has("rope_theta")) shape.rotary_base = of_rotary.number("rope_theta");
  shape.norm_epsilon = fields.has("rms_norm_eps") ? fields.number("rms_norm_eps") : 1e-6;
  check(shape.width % (2 * shape.heads) == 0 && shape.heads % shape.key_heads == 0, path.string(),
        ": ", shape.heads, " heads must have an even share of hidden_size, which is ", shape.width,
        ", and share ", shape.key_heads, " key heads evenly");
  check(shape.rotary_base > 0 && shape.norm_epsilon > 0, path.string(),
        ": rope_theta and rms_norm_eps must be above 0");
  const bool is_scaled =
      (object.contains("rope_scaling") && !object.at("rope_scaling").is_null()) ||
      rotary.value("rope_type", nlohmann::ordered_json("default")) != "default";
  check(!is_scaled, path.string(), ": scaled rotary positions (rope_scaling) are not supported");
  return shape;
}

Decoder decoder_of_transformers(const fs::path& folder) {
  const auto shape = shape_in_config(folder / "config.json");
  const auto weights = folder / "model.safetensors";
  auto parameters = read_tensors(weights);
  // Frequencies of the positions, which older versions wrote too.
  std::erase_if(parameters,
                [](const auto& item) { return item.first.ends_with("rotary_emb.inv_freq"); });
  for (auto& [name, tensor] : parameters) {
    const bool is_rotated =
        name.ends_with("self_attn.q_proj.weight") || name.ends_with("self_attn.k_proj.weight");
    if (!is_rotated || tensor.dim() != 2 || tensor.size(0) % shape.head_width() != 0) continue;
    tensor = with_pairs_side_by_side(tensor, shape.head_width());
  }
  return Decoder::from(shape, std::move(parameters), weights.string());
}

}  // namespace

Decoder read_decoder(const fs::path& path) {
  return fs::is_directory(path) ? decoder_of_transformers(path) : decoder_of_llama2c(path);
}

Tokenizer read_tokenizer(const fs::path& path, const Decoder& decoder) {
  constexpr int64_t kMostTokenizerBytes = int64_t{1} << 28;
  const auto where = path.string();
  Tokenizer tokenizer(parse_llama2c_tokenizer(read_stored_file(path, kMostTokenizerBytes), where),
                      where);
  check(tokenizer.size() == decoder.shape().vocabulary, where, ": has ", tokenizer.size(),
        " pieces; the model has ", decoder.shape().vocabulary, " tokens");
  return tokenizer;
}

}  // namespace kelvin
