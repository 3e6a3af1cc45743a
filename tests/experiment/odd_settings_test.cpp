#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <new>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/formats/toml_text.h"
#include "tests/support/command.h"
#include "tests/support/tiny_run.h"

namespace kelvin::odd_settings_test {

// Values at the ends of what int64, double and float32 hold, and beyond.
const std::vector<Value> kOddValues = {0,
                                       -1,
                                       INT64_MAX,
                                       INT64_MIN,
                                       int64_t{1'000'000'000'000'000'000},
                                       1e-46,
                                       1e-30,
                                       1e30,
                                       1e39,
                                       1e300,
                                       -1e300,
                                       std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN()};

constexpr auto kComparesViews = "info_nce";

// A run of a second that measures all it can, and stops by itself.
void run_with(const std::string& key, const Value& value, const std::string& loss) {
  const TemporaryFolder folder;
  auto config = tiny_config(
      {"data.train_samples=48", "data.test_samples=24", "train.batch_size=24", "train.epochs=1",
       "model.width=4", "model.depth=2", "measure.epoch_samples=12", "measure.train_samples=24",
       "measure.detectors=[\"all\"]", "train.loss=" + loss,
       R"(measure.names=["accuracy", "calibration", "layer_spectrum", "linear_probe",)"
       R"( "neural_collapse", "norm_growth", "gradient_rank", "alignment", "post_softmax_rank"])"});
  if (loss == kComparesViews) {
    config.set("data.augment", "crop-flip");
    config.apply_override(R"(measure.names=["layer_spectrum", "linear_probe", "gradient_rank"])");
  }
  config.set(key, value);
  RunContext context;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  context.should_stop = [&] { return std::chrono::steady_clock::now() > end; };
  run(config, folder / "run", kNoMetadata, context);
}

// Every setting that takes a number, with every odd value: it works, or is refused in one line.
TEST(OddSettingsSlow, AreUsedOrRefused) {
  for (const std::string loss : {"cross_entropy", "focal", "mse", "logit_norm", kComparesViews}) {
    auto wanted = tiny_config({"train.loss=" + loss});
    if (loss == kComparesViews) {
      for (const char* each :
           {"data.augment=crop-flip", "measure.names=[]", "measure.detectors=[\"neco\"]"}) {
        wanted.apply_override(each);
      }
    }
    const auto resolved = RunSettings::from(wanted).resolved;
    for (const auto& [key, usual] : resolved.values()) {
      const bool is_of_loss = key.starts_with("train.loss_");
      if (!usual.is_number() || (loss != "cross_entropy" && !is_of_loss)) continue;
      for (const auto& value : kOddValues) {
        // A whole number where a fraction may stand, and the other way round, is of another test.
        if (usual.is_number_integer() != value.is_number_integer()) continue;
        const auto what = key + " = " + toml_text_of(value);
        try {
          run_with(key, value, loss);
        } catch (const Error& error) {
          EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << what;
        } catch (const std::bad_alloc&) {
        } catch (const c10::Error& error) {
          const std::string message = error.what_without_backtrace();
          EXPECT_NE(message.find("DefaultCPUAllocator"), std::string::npos)
              << what << ": " << message.substr(0, message.find('\n'));
        } catch (const std::exception& error) {
          ADD_FAILURE() << what << ": " << error.what();
        }
      }
    }
  }
}

}  // namespace kelvin::odd_settings_test
