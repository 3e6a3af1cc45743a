#include "kelvin/model/weight_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/built_model.h"

namespace kelvin::weight_names_test {

using Set = std::set<std::string>;

TEST(OurNames, AreKeptIfTheyFit) {
  const auto names = our_names({"a", "b"}, {"a", "b"}, {});
  EXPECT_EQ(names.at("a"), "a");
  EXPECT_EQ(names.size(), 2U);
}

TEST(OurNames, MayLackSome) {
  EXPECT_EQ(our_names({"linear.weight"}, {"fc.weight", "n"}, {"n"}).at("linear.weight"),
            "fc.weight");
}

TEST(OurNames, ComeOutOfContainersAndWrappers) {
  const auto names =
      our_names({"state_dict.module.a", "state_dict.module.b", "optimizer.a"}, {"a", "b"}, {});
  EXPECT_EQ(names.at("state_dict.module.a"), "a");
  EXPECT_FALSE(names.contains("optimizer.a"));
}

TEST(OurNames, StayUnlikeOursIfNoSourceFits) {
  const auto names = our_names({"x", "y"}, {"a", "b"}, {});
  EXPECT_EQ(names.at("x"), "x");
}

TEST(OurNames, DoNotMergeTwoTensorsIntoOne) {
  // "linear." becomes "fc.", which is there already.
  const auto names = our_names({"linear.weight", "fc.weight"}, {"fc.weight"}, {});
  EXPECT_EQ(names.at("linear.weight"), "linear.weight");
}

TEST(OurNames, OfEverySourceCanBeMade) {
  EXPECT_EQ(our_names({"layer1.0.shortcut.0.weight", "linear.bias"},
                      {"layer1.0.downsample.0.weight", "fc.bias"}, {})
                .at("layer1.0.shortcut.0.weight"),
            "layer1.0.downsample.0.weight");
  EXPECT_EQ(our_names({"conv1.1.running_mean", "conv4_x.1.residual_function.3.weight"},
                      {"bn1.running_mean", "layer3.1.conv2.weight"}, {})
                .at("conv4_x.1.residual_function.3.weight"),
            "layer3.1.conv2.weight");
  EXPECT_EQ(our_names({"features.module.0.weight", "classifier.1.bias", "classifier.4.bias"},
                      {"features.0.weight", "classifier.0.bias", "classifier.3.bias"}, {})
                .at("classifier.4.bias"),
            "classifier.3.bias");
  EXPECT_EQ(our_names({"encoder.layers.encoder_layer_11.self_attention.in_proj_bias",
                       "encoder.layers.encoder_layer_11.mlp.3.weight"},
                      {"blocks.11.attn.qkv.bias", "blocks.11.mlp.fc2.weight"}, {})
                .at("encoder.layers.encoder_layer_11.self_attention.in_proj_bias"),
            "blocks.11.attn.qkv.bias");
}

TEST(WeightSources, AreAllDocumented) {
  std::ifstream file(KELVIN_SOURCE_DIR "/docs/models.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const auto& source : weight_sources()) {
    EXPECT_NE(text.str().find(source.name), std::string::npos) << source.name;
  }
}

TEST(OurNames, AreThoseOfThePartThatIsAskedFor) {
  const Set stored = {"state_dict.a", "state_dict_ema.n_averaged", "state_dict_ema.module.a"};
  EXPECT_EQ(our_names(stored, {"a"}, {}).begin()->first, "state_dict.a");
  const auto average = our_names(stored, {"a"}, {}, "state_dict_ema");
  EXPECT_EQ(average.size(), 1U);
  EXPECT_EQ(average.at("state_dict_ema.module.a"), "a");
  EXPECT_TRUE(our_names(stored, {"a"}, {}, "state").empty());
}

TEST(OurNames, OfAnotherNetworkAreThoseOfTheSourceThatFitsBest) {
  const auto names = our_names({"linear.weight", "extra"}, {"fc.weight"}, {});
  EXPECT_EQ(names.at("linear.weight"), "fc.weight");
  EXPECT_EQ(names.at("extra"), "extra");
}

TEST(WeightParts, AreThoseThatHoldMostOfTheNames) {
  const Set wanted = {"a", "b.c", "d"};
  EXPECT_EQ(weight_parts({"model.a", "model.b.c", "ema.module.a", "ema.module.b.c", "ema.module.d",
                          "optimizer.a", "x"},
                         wanted),
            (std::vector<std::string>{"ema", "model"}));
  EXPECT_TRUE(weight_parts({"a", "b.c", "d"}, wanted).empty());
}

TEST(OurNames, ComeOutOfWrappersAndContainersInAnyOrder) {
  for (const std::string prefix :
       {"_orig_mod.module.", "module._orig_mod.", "state_dict.module.model.", "model.state_dict.",
        "network.", "weights.", "params.", "model_state."}) {
    const auto names = our_names({prefix + "a", prefix + "b"}, {"a", "b"}, {});
    EXPECT_EQ(names.at(prefix + "a"), "a") << prefix;
  }
}

TEST(OurNames, LeaveOutCountsBesideTheWeights) {
  const auto names = our_names({"a", "a.total_ops", "total_params", "n_averaged"}, {"a"}, {});
  EXPECT_EQ(names.size(), 1U);
}

}  // namespace kelvin::weight_names_test
