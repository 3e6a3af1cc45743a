#include "kelvin/language/decoder_file.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "kelvin/core/files.h"
#include "kelvin/model/tensors_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/language_files.h"

namespace kelvin::decoder_file_test {

// The config of transformers for the shape of Llama2cHeader.
std::string config(const std::string& more = "") {
  return R"({"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
             "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 300,
             "max_position_embeddings": 16, "rms_norm_eps": 1e-5)" +
         more + "}";
}

class DecoderFile : public testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(folder_ / "x.bin", llama2c_bytes());
    std::filesystem::create_directory(folder_ / "llama");
  }

  // The weights of x.bin as transformers would write them.
  NamedTensors weights() const {
    NamedTensors tensors;
    const auto checkpoint = parse_llama2c(read_file(folder_ / "x.bin"), "x.bin");
    for (const auto& stored : checkpoint.weights.tensors) {
      auto tensor = torch::empty(stored.shape, torch::kFloat32);
      std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
      const bool is_rotated = stored.name.find("q_proj") != std::string::npos ||
                              stored.name.find("k_proj") != std::string::npos;
      // Heads of four rows: 0 2 1 3.
      if (is_rotated) tensor = tensor.unflatten(0, {-1, 2, 2}).transpose(1, 2).flatten(0, 2);
      tensors[stored.name] = tensor.contiguous();
    }
    return tensors;
  }

  void write_llama(const NamedTensors& tensors, const std::string& text = config()) const {
    write_file_atomically(folder_ / "llama/config.json", text);
    write_safetensors(folder_ / "llama/model.safetensors", tensors);
  }

  std::string error_of_llama() const {
    return error_of([&] { read_decoder(folder_ / "llama"); });
  }

  const torch::Tensor tokens_ = torch::tensor({{1, 17, 250, 17, 3}}, torch::kInt64);
  TemporaryFolder folder_;
  torch::NoGradGuard no_grad_;
};

TEST_F(DecoderFile, IsTheSameFromLlama2cAndFromTransformers) {
  write_llama(weights());
  const auto a = read_decoder(folder_ / "x.bin").logits(tokens_);
  const auto b = read_decoder(folder_ / "llama").logits(tokens_);
  EXPECT_TRUE(a.allclose(b, 1e-5, 1e-6));
}

TEST_F(DecoderFile, TakesTheBaseOfPositionsFromEitherPlace) {
  write_llama(weights());
  const auto usual = read_decoder(folder_ / "llama").logits(tokens_);
  write_llama(weights(), config(R"(, "rope_theta": 100.0)"));
  const auto other = read_decoder(folder_ / "llama").logits(tokens_);
  EXPECT_FALSE(other.allclose(usual, 1e-3, 1e-3));
  write_llama(weights(), config(R"(, "rope_parameters": {"rope_theta": 100.0})"));
  EXPECT_TRUE(read_decoder(folder_ / "llama").logits(tokens_).equal(other));
}

TEST_F(DecoderFile, LeavesOutFrequenciesThatOlderVersionsWrote) {
  auto tensors = weights();
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch::zeros({2});
  write_llama(tensors);
  EXPECT_NO_THROW(read_decoder(folder_ / "llama"));
}

TEST_F(DecoderFile, NamesWhatWeightsMissOrHaveTooMuch) {
  const auto path = folder_ / "llama/model.safetensors";
  auto tensors = weights();
  tensors["extra.weight"] = torch::zeros({2});
  write_llama(tensors);
  EXPECT_EQ(error_of_llama(), path + ": has 1 tensors too many, such as 'extra.weight'");
  tensors = weights();
  tensors.erase("model.norm.weight");
  write_llama(tensors);
  EXPECT_EQ(error_of_llama(), path + ": has no model.norm.weight");
  tensors = weights();
  tensors["model.norm.weight"] = torch::zeros({9});
  write_llama(tensors);
  EXPECT_EQ(error_of_llama(),
            path +
                ": model.norm.weight must be floating-point numbers of shape [8], are Float "
                "[9]");
  tensors["model.norm.weight"] = torch::zeros({8}, torch::kInt64);
  write_llama(tensors);
  EXPECT_EQ(error_of_llama(),
            path +
                ": model.norm.weight must be floating-point numbers of shape [8], are Long "
                "[8]");
}

TEST_F(DecoderFile, RefusesConfigsThatCannotBe) {
  const auto path = folder_ / "llama/config.json";
  write_llama(weights(), config(R"(, "rope_scaling": {"type": "linear"})"));
  EXPECT_EQ(error_of_llama(), path + ": scaled rotary positions (rope_scaling) are not supported");
  write_llama(weights(), config(R"(, "rope_parameters": {"rope_type": "llama3"})"));
  EXPECT_EQ(error_of_llama(), path + ": scaled rotary positions (rope_scaling) are not supported");
  write_llama(weights(), config(R"(, "model_type": "gemma")"));
  EXPECT_EQ(error_of_llama(), path + ": model_type must be llama, is \"gemma\"");
  write_llama(weights(), config(R"(, "hidden_act": "gelu")"));
  EXPECT_EQ(error_of_llama(), path + ": hidden_act must be silu, is \"gelu\"");
  write_llama(weights(), config(R"(, "rope_theta": 0)"));
  EXPECT_EQ(error_of_llama(), path + ": rope_theta and rms_norm_eps must be above 0");
  auto text = config();
  text.replace(text.find("\"num_attention_heads\": 2"), 24, "\"num_attention_heads\": 3");
  write_llama(weights(), text);
  EXPECT_EQ(error_of_llama(), path +
                                  ": 3 heads must have an even share of hidden_size, which is 8, "
                                  "and share 1 key heads evenly");
  text = config();
  text.replace(text.find("\"hidden_size\": 8"), 16, "\"hidden_size\": 0");
  write_llama(weights(), text);
  const auto message = error_of_llama();
  EXPECT_TRUE(message.ends_with(": must be from 1 to 1048576, is 0")) << message;
}

TEST_F(DecoderFile, RefusesATokenizerOfAnotherModel) {
  const auto decoder = read_decoder(folder_ / "x.bin");
  write_file_atomically(folder_ / "tokenizer.bin", tokenizer_bytes({"a"}, 301));
  EXPECT_EQ(error_of([&] { read_tokenizer(folder_ / "tokenizer.bin", decoder); }),
            (folder_ / "tokenizer.bin") + ": has 301 pieces; the model has 300 tokens");
}

}  // namespace kelvin::decoder_file_test
