#include "kelvin/core/reading.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelvin {
namespace {

TEST(FieldsOf, LeaveOutWhatIsNotSet) {
  EXPECT_EQ(fields_of({.name = "accuracy", .value = 0.5}).dump(),
            R"({"name":"accuracy","value":0.5})");
}

TEST(FieldsOf, HoldEverythingButTheDefinitionInAFixedOrder) {
  const Reading reading{.name = "auroc",
                        .value = 0.75,
                        .layer = "layer3",
                        .split = "test",
                        .detector = "msp",
                        .ood = "textures",
                        .index = 4,
                        .definition = {{"matrix", "logits"}}};
  EXPECT_EQ(fields_of(reading).dump(),
            R"({"name":"auroc","value":0.75,"layer":"layer3","split":"test","detector":"msp",)"
            R"("ood":"textures","index":4})");
}

TEST(FieldsOf, TellBothEndsOfAnInterval) {
  const Reading reading{.name = "kappa", .value = 0.5, .interval = Interval{0.25, 0.75}};
  EXPECT_EQ(fields_of(reading).dump(), R"({"name":"kappa","value":0.5,"low":0.25,"high":0.75})");
}

TEST(FieldsOf, KeepTheIndexZero) {
  EXPECT_EQ(fields_of({.name = "singular_value", .value = 1, .index = 0}).at("index"), 0);
}

TEST(FieldsOf, KeepEveryBitOfTheValue) {
  for (const double value : {0.1, 1.0 / 3, 1e-308, 123456789.123456789}) {
    const auto text = fields_of({.name = "x", .value = value}).dump();
    EXPECT_EQ(nlohmann::json::parse(text).at("value").get<double>(), value);
  }
}

TEST(Reading, HasAnEmptyObjectForItsDefinitionByDefault) {
  EXPECT_EQ(Reading{}.definition.dump(), "{}");
}

}  // namespace
}  // namespace kelvin
