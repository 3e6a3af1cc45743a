#include "kelvin/formats/llama2c_file.h"

#include <array>
#include <memory>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/byte_reader.h"

namespace kelvin {
namespace {

constexpr uint64_t kLlamaHeaderBytes = 7 * sizeof(int32_t);

// Products of all sizes stay far below 2^63.
void check_size(const std::string& where, const char* what, int64_t size, int64_t most) {
  check(size >= 1 && size <= most, where, ": is no checkpoint of llama2.c: ", what,
        " must be from 1 to ", most, ", is ", size);
}

LlamaShape checked(const LlamaShape& shape, const std::string& where) {
  constexpr int64_t kMostWidth = 1 << 20;
  check_size(where, "the width", shape.width, kMostWidth);
  check_size(where, "the hidden width", shape.hidden, kMostWidth);
  check_size(where, "the number of layers", shape.layers, 4096);
  check_size(where, "the number of heads", shape.heads, shape.width);
  check_size(where, "the number of key heads", shape.key_heads, shape.heads);
  check_size(where, "the vocabulary", shape.vocabulary, kMostWidth);
  check_size(where, "the context", shape.context, kMostWidth);
  check(shape.width % (2 * shape.heads) == 0, where, ": ", shape.heads,
        " heads must have an even share of the width, which is ", shape.width);
  check(shape.heads % shape.key_heads == 0, where, ": ", shape.heads, " heads cannot share ",
        shape.key_heads, " key heads");
  return shape;
}

// Hands out the numbers behind the header one tensor after the other.
class TensorsInOrder {
 public:
  explicit TensorsInOrder(StoredTensors& tensors) : tensors_(tensors) {}

  void take(const std::string& name, std::vector<int64_t> shape) {
    const auto bytes = stored_tensor_bytes("F32", shape, name);
    tensors_.tensors.push_back({.name = name,
                                .dtype = "F32",
                                .shape = std::move(shape),
                                .bytes = std::string_view(*tensors_.file).substr(at_, bytes)});
    at_ += bytes;
  }

  // One for each layer, which the file has one behind the other.
  void take_of_layers(int64_t layers, const std::string& name, const std::vector<int64_t>& shape) {
    for (int64_t i = 0; i < layers; ++i) {
      take("model.layers." + std::to_string(i) + "." + name + ".weight", shape);
    }
  }

  void skip(int64_t numbers) { at_ += static_cast<uint64_t>(numbers) * sizeof(float); }

 private:
  StoredTensors& tensors_;
  uint64_t at_ = kLlamaHeaderBytes;
};

}  // namespace

LlamaCheckpoint parse_llama2c(std::string file, const std::string& where) {
  check(file.size() >= kLlamaHeaderBytes, where, ": is no checkpoint of llama2.c: has ",
        file.size(), " bytes, its header alone ", kLlamaHeaderBytes);
  const ByteReader reader(file, where);
  std::array<int64_t, 7> header = {};
  for (size_t i = 0; i < header.size(); ++i) {
    header.at(i) = reader.number<int32_t>(i * sizeof(int32_t));
  }
  // A negative vocabulary says that the classifier has weights of its own.
  const bool has_classifier = header[5] < 0;
  const auto shape = checked({.width = header[0],
                              .hidden = header[1],
                              .layers = header[2],
                              .heads = header[3],
                              .key_heads = header[4],
                              .vocabulary = has_classifier ? -header[5] : header[5],
                              .context = header[6]},
                             where);
  const auto head_width = shape.width / shape.heads;
  const auto key_width = head_width * shape.key_heads;
  const auto of_layer = 2 * shape.width + 2 * shape.width * (shape.width + key_width) +
                        3 * shape.width * shape.hidden;
  const auto rotations = shape.context * head_width;  // cosines and sines, which follow from places
  const auto embedding = shape.vocabulary * shape.width;
  const auto numbers =
      embedding * (has_classifier ? 2 : 1) + shape.layers * of_layer + shape.width + rotations;
  const auto needed = kLlamaHeaderBytes + static_cast<uint64_t>(numbers) * sizeof(float);
  check(file.size() == needed, where, ": ", shape.layers, " layers of ", shape.width,
        " numbers and ", shape.vocabulary, " tokens need ", needed, " bytes, the file has ",
        file.size());

  LlamaCheckpoint checkpoint{.shape = shape, .weights = {}};
  auto& weights = checkpoint.weights;
  weights.file = std::make_shared<const std::string>(std::move(file));
  TensorsInOrder tensors(weights);
  const auto w = shape.width;
  const auto h = shape.hidden;
  tensors.take("model.embed_tokens.weight", {shape.vocabulary, w});
  tensors.take_of_layers(shape.layers, "input_layernorm", {w});
  tensors.take_of_layers(shape.layers, "self_attn.q_proj", {w, w});
  tensors.take_of_layers(shape.layers, "self_attn.k_proj", {key_width, w});
  tensors.take_of_layers(shape.layers, "self_attn.v_proj", {key_width, w});
  tensors.take_of_layers(shape.layers, "self_attn.o_proj", {w, w});
  tensors.take_of_layers(shape.layers, "post_attention_layernorm", {w});
  tensors.take_of_layers(shape.layers, "mlp.gate_proj", {h, w});
  tensors.take_of_layers(shape.layers, "mlp.down_proj", {w, h});
  tensors.take_of_layers(shape.layers, "mlp.up_proj", {h, w});
  tensors.take("model.norm.weight", {w});
  tensors.skip(rotations);
  if (has_classifier) tensors.take("lm_head.weight", {shape.vocabulary, w});
  return checkpoint;
}

}  // namespace kelvin
