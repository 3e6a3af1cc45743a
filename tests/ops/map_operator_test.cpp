#include "kelvin/ops/map_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::map_operator_test {

c10::OperatorHandle operator_of(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("kelvin::" + name).c_str(), "");
}

std::string schema_of(const std::string& name) {
  std::ostringstream text;
  text << operator_of(name).schema();
  return text.str();
}

torch::Tensor called(const std::string& name, c10::Stack stack) {
  operator_of(name).callBoxed(stack);
  return stack.at(0).toTensor();
}

TEST(MapOperators, TakeTheSettingsOfTheirMaps) {
  EXPECT_EQ(
      schema_of("sparsemax"),
      "kelvin::sparsemax(Tensor x, float temperature=1., *, int dim=-1, Tensor? mask=None) -> "
      "Tensor");
  EXPECT_EQ(schema_of("sigmoid"),
            "kelvin::sigmoid(Tensor x, float temperature=1., *, float bias=0., bool "
            "length_bias=True, int dim=-1, Tensor? mask=None) -> Tensor");
  EXPECT_NE(schema_of("adaptive_softmax").find("str past_the_peak=\"fall\""), std::string::npos);
}

TEST(MapOperators, AreThereForEveryMap) {
  for (const auto& [name, entry] : simplex_maps().entries()) {
    const auto schema = schema_of(entry.operator_name.empty() ? name : entry.operator_name);
    EXPECT_NE(schema.find("(Tensor x, float temperature=1., *, "), std::string::npos) << schema;
  }
}

TEST(MapOperators, AreTheirMaps) {
  const auto logits = noise({5, 4, 9}, 1);
  const auto none = c10::IValue();
  expect_close(called("sparsemax", {logits, 2.0, -1, none}), mapped("sparsemax", logits, {}, 2), 0);
  expect_close(called("top_k", {logits, 1.0, 3, -1, none}), mapped("top_k", logits, {{"k", 3}}), 0);
  const auto turned = logits.transpose(1, 2);
  expect_close(called("ssmax", {turned, 1.0, 0.7, 1, none}).transpose(1, 2),
               mapped("ssmax", logits, {{"s", 0.7}}), 0);
}

TEST(MapOperators, MaskWhatIsFalse) {
  const auto logits = noise({5, 4, 9}, 1);
  const auto mask = noise({4, 9}, 2) < 0.5;
  expect_close(
      called("log_n", {logits, 1.0, 9, -1, mask}),
      mapped("log_n", logits.masked_fill(mask.logical_not(), -HUGE_VAL), {{"train_length", 9}}), 0);
}

TEST(MapOperators, RejectWhatDoesNotFit) {
  const auto logits = noise({5, 4, 9}, 1);
  const auto refusal = [](const torch::Tensor& x, int64_t dim, const torch::Tensor& mask) {
    return error_of([&] {
      mapped_along(
          "map", [](const torch::Tensor& each, double) { return each; }, x, 1, dim, mask);
    });
  };
  EXPECT_EQ(refusal(logits, 3, {}), "map: dim must be in [-3, 3), got 3");
  EXPECT_EQ(refusal(logits.to_sparse(), -1, {}), "map: logits must be dense, are Sparse");
  EXPECT_EQ(refusal(logits, -1, logits),
            "map: the mask must be boolean, true where a logit takes part, is double");
  EXPECT_EQ(refusal(logits, -1, torch::ones({5, 4}, torch::kBool)),
            "map: the mask must have the sizes [5, 4, 9] of the logits or expand to them, has [5, "
            "4]");
  EXPECT_EQ(refusal(torch::tensor(1.0), -1, {}), "map: logits must be [..., classes], got []");
}

}  // namespace kelvin::map_operator_test
