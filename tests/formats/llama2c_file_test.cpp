#include "kelvin/formats/llama2c_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/language_files.h"
#include "tests/support/mutations.h"

namespace kelvin::llama2c_file_test {

std::string error_for(const Llama2cHeader& header) {
  // The numbers do not matter: the header is refused before.
  auto bytes = llama2c_bytes();
  std::memcpy(bytes.data(), &header, sizeof(header));
  return error_of([&] { parse_llama2c(bytes, "x.bin"); });
}

TEST(Llama2cFile, HoldsTheShapeAndTensorsByTheirNames) {
  const auto checkpoint = parse_llama2c(llama2c_bytes(), "x.bin");
  EXPECT_EQ(checkpoint.shape.width, 8);
  EXPECT_EQ(checkpoint.shape.key_heads, 1);
  EXPECT_EQ(checkpoint.shape.vocabulary, 300);
  EXPECT_EQ(checkpoint.shape.context, 16);
  const auto& tensors = checkpoint.weights.tensors;
  ASSERT_EQ(tensors.size(), 2U + 2 * 9);
  EXPECT_EQ(tensors.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(tensors.front().shape, (std::vector<int64_t>{300, 8}));
  EXPECT_EQ(tensors[5].name, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(tensors[5].shape, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(tensors.back().name, "model.norm.weight");
}

// What stands first in the file is the embedding, what stands last a classifier of its own.
TEST(Llama2cFile, TellsAClassifierByANegativeVocabulary) {
  const auto bytes = llama2c_bytes({.vocabulary = -300});
  const auto& tensors = parse_llama2c(bytes, "x.bin").weights.tensors;
  ASSERT_EQ(tensors.back().name, "lm_head.weight");
  EXPECT_EQ(tensors.front().bytes, bytes.substr(28, 300 * 8 * 4));
  EXPECT_EQ(tensors.back().bytes, bytes.substr(bytes.size() - 300 * 8 * 4));
}

TEST(Llama2cFile, MustHaveTheSizeThatItsHeaderSays) {
  const auto bytes = llama2c_bytes();
  const auto size = std::to_string(bytes.size());
  const auto expect = [&](const std::string& other) {
    EXPECT_EQ(error_of([&] { parse_llama2c(other, "x.bin"); }),
              "x.bin: 2 layers of 8 numbers and 300 tokens need " + size + " bytes, the file has " +
                  std::to_string(other.size()));
  };
  expect(bytes.substr(0, bytes.size() - 1));
  expect(bytes + "x");
  EXPECT_EQ(error_of([&] { parse_llama2c("llama", "x.bin"); }),
            "x.bin: is no checkpoint of llama2.c: has 5 bytes, its header alone 28");
}

TEST(Llama2cFile, RefusesSizesThatDoNotFitEachOther) {
  EXPECT_EQ(error_for({.context = 0}),
            "x.bin: is no checkpoint of llama2.c: the context must be from 1 to 1048576, is 0");
  EXPECT_EQ(error_for({.layers = -1}),
            "x.bin: is no checkpoint of llama2.c: the number of layers must be from 1 to 4096, is "
            "-1");
  EXPECT_EQ(error_for({.heads = 3}),
            "x.bin: 3 heads must have an even share of the width, which is 8");
  EXPECT_EQ(error_for({.width = 12, .heads = 3, .key_heads = 2}),
            "x.bin: 3 heads cannot share 2 key heads");
}

TEST(Llama2cFile, NeverCrashesWhateverItHolds) {
  expect_values_or_errors(llama2c_bytes({.vocabulary = 20}), 2000, 1, [](const std::string& bytes) {
    for (const auto& tensor : parse_llama2c(bytes, "x.bin").weights.tensors) {
      check_stored_tensor(tensor, "x.bin");
    }
  });
}

}  // namespace kelvin::llama2c_file_test
