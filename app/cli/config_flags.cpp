#include "app/cli/config_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "app/cli/common_flags.h"
#include "app/cli/help_text.h"
#include "app/cli/setting_words.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

enum class Kind { text, file, size, names, whole_number, number, yes };

struct ConfigFlag {
  const char* names;  // for CLI11; the last one is used in messages
  const char* key;
  unsigned uses;  // verbs, see ConfigUse
  Kind kind;
  const char* help;
  const char* choices = nullptr;      // see ValueType
  const char* former_name = nullptr;  // still works, not shown
};

constexpr unsigned kForAll =
    kForTrain | kForMeasure | kForOod | kForProbe | kForTruncate | kForCalibrate;

constexpr std::array kFlags = {
    ConfigFlag{"--model", "model.name", kForAll, Kind::text,
               "architecture, see 'kelvin list models'", "<models>"},
    ConfigFlag{"--dataset", "data.name", kForAll, Kind::text,
               "what to learn, see 'kelvin list datasets'", "<datasets>"},
    ConfigFlag{"--ood", "data.ood", kForTrain | kForMeasure | kForOod | kForProbe, Kind::names,
               "OOD (out-of-distribution) data sets; may be repeated", "<datasets>"},
    ConfigFlag{"--train-samples", "data.train_samples",
               kForTrain | kForMeasure | kForOod | kForProbe | kForTruncate, Kind::whole_number,
               "training images, as equally of each class as possible; 0 is all"},
    ConfigFlag{"--test-samples", "data.test_samples", kForAll, Kind::whole_number,
               "test images, as equally of each class as possible; 0 is all"},
    ConfigFlag{"--validation-samples", "data.validation_samples", kForTrain | kForCalibrate,
               Kind::whole_number, "training images that are held out"},
    ConfigFlag{"--classes", "data.classes", kForAll, Kind::names,
               "10: the first ten; otherwise names"},
    ConfigFlag{"--augment", "data.augment", kForTrain, Kind::text,
               "none, flip, crop, crop-flip or resized-crop-flip",
               "none|flip|crop|crop-flip|resized-crop-flip"},
    ConfigFlag{"--image-size", "data.image_size", kForAll, Kind::whole_number,
               "side of the images"},
    ConfigFlag{"--pretrained", "init.pretrained", kForTrain, Kind::file,
               "file of weights to start from: safetensors, or a dict saved by torch"},
    ConfigFlag{"--reset-head", "init.reset_head", kForTrain, Kind::yes,
               "the last layer is drawn anew, for other classes than the weights have"},
    ConfigFlag{"--target-logits-norm", "init.target_logits_norm", kForTrain, Kind::number,
               "scale the last layer so that the logits have this norm per sample at step 0"},
    ConfigFlag{"-T,--temperature", "train.temperature",
               kForTrain | kForMeasure | kForOod | kForCalibrate, Kind::number,
               "of the softmax in the loss"},
    ConfigFlag{"--temperature-schedule", "train.temperature_schedule", kForTrain, Kind::text,
               "constant, linear, cosine, step, cyclic, warm or learned",
               "constant|linear|cosine|step|cyclic|warm|learned"},
    ConfigFlag{"--temperature-end", "train.temperature_end", kForTrain, Kind::number,
               "where linear, cosine, cyclic and warm go to"},
    ConfigFlag{"--loss", "train.loss", kForTrain | kForMeasure, Kind::text,
               "see 'kelvin list losses'", "<losses>"},
    ConfigFlag{"--smoothing", "train.loss_smoothing", kForTrain, Kind::number,
               "of the labels, for the loss cross_entropy"},
    ConfigFlag{"--epochs", "train.epochs", kForTrain, Kind::whole_number,
               "passes over the training data"},
    ConfigFlag{"-b,--batch-size", "train.batch_size", kForTrain, Kind::whole_number,
               "images per step"},
    ConfigFlag{"--lr", "train.lr", kForTrain, Kind::number, "learning rate"},
    ConfigFlag{"--sched", "train.schedule", kForTrain, Kind::text,
               "how the learning rate changes: constant, cosine, step or one-cycle",
               "constant|cosine|step|one-cycle"},
    ConfigFlag{"--lr-scale-with-t", "train.lr_scale_with_t", kForTrain, Kind::text,
               "multiply the learning rate by T (linear) or its square root (sqrt), or not (none)",
               "none|linear|sqrt"},
    ConfigFlag{"--opt", "train.optimizer", kForTrain, Kind::text,
               "sgd, adam, or with decoupled weight decay sgdw, adamw", "sgd|adam|sgdw|adamw"},
    ConfigFlag{"--momentum", "train.momentum", kForTrain, Kind::number, "of SGD"},
    ConfigFlag{"--weight-decay", "train.weight_decay", kForTrain, Kind::number, "of the optimizer"},
    ConfigFlag{"--clip-grad", "train.clip_norm", kForTrain, Kind::number,
               "largest norm of the gradient; 0 is any"},
    ConfigFlag{"--model-ema-decay", "train.ema", kForTrain, Kind::number,
               "use a moving average of the weights that forgets at this pace; 0 is none"},
    ConfigFlag{"--precision", "train.precision", kForTrain, Kind::text, "of products: fp32 or bf16",
               "fp32|bf16"},
    ConfigFlag{"--reference-ops", "train.plain", kForTrain, Kind::yes,
               "train with LibTorch's own operations, without kelvin's faster ones", nullptr,
               "--plain"},
    ConfigFlag{"--device", "device", kForAll, Kind::text, "cpu, cuda or cuda:N", "cpu|cuda"},
    ConfigFlag{"--checkpoint-steps", "train.checkpoint_steps", kForTrain, Kind::whole_number,
               "save the state of training so often, not only after each epoch"},
    ConfigFlag{"--steps-per-decade", "measure.steps_per_decade", kForTrain, Kind::whole_number,
               "look at the network also at so many steps from 1 to 10, from 10 to 100, ..."},
    ConfigFlag{"--warmup-epochs", "train.warmup_epochs", kForTrain, Kind::number,
               "epochs in which the learning rate rises"},
    ConfigFlag{"--seed", "seed", kForAll, Kind::whole_number, "of everything random"},
    ConfigFlag{"--measures", "measure.names", kForTrain | kForMeasure, Kind::names,
               "what to measure, see 'kelvin list measures'", "<measures>"},
    ConfigFlag{"--detectors", "measure.detectors", kForTrain | kForMeasure | kForOod, Kind::names,
               "all, or names; see 'kelvin list detectors'", "all|<detectors>"},
    ConfigFlag{"--near", "measure.near", kForTrain | kForMeasure | kForOod, Kind::names,
               "OOD data sets that are like the own one, for a mean over them", "<datasets>"},
    ConfigFlag{"--far", "measure.far", kForTrain | kForMeasure | kForOod, Kind::names,
               "OOD data sets that are not", "<datasets>"},
    ConfigFlag{"--eval-temperature", "measure.temperature",
               kForTrain | kForMeasure | kForOod | kForCalibrate, Kind::number,
               "of the softmax when measuring; otherwise that of training"},
    ConfigFlag{"--memory", "measure.memory", kForAll, Kind::size,
               "that measures may hold together, such as 4GiB"},
    ConfigFlag{"--protocol", "measure.layer_spectrum.protocol", kForTrain | kForMeasure, Kind::text,
               "of the spectra of layers: sketch, tunnel or exact", "sketch|tunnel|exact"},
};

constexpr std::string_view kRepeatable = "data.ood";  // --ood a --ood b

std::string name_in_messages(const ConfigFlag& flag) {
  const std::string names = flag.names;
  return names.substr(names.rfind(',') + 1);
}

const char* shown_type(Kind kind) {
  switch (kind) {
    case Kind::text:
      return "NAME";
    case Kind::file:
      return "FILE";
    case Kind::size:
      return "SIZE";
    case Kind::names:
      return "A,B";
    case Kind::whole_number:
      return "N";
    case Kind::number:
      return "X";
    case Kind::yes:
      return "";
  }
  return "";
}

std::string type_name_of(const ConfigFlag& flag) {
  const std::string shown = shown_type(flag.kind);
  return flag.choices == nullptr ? shown : shown + " of " + flag.choices;
}

Value value_of(const ConfigFlag& flag, const std::string& text) {
  const auto name = name_in_messages(flag);
  switch (flag.kind) {
    case Kind::text:
    case Kind::file:
    case Kind::size:
      return text;
    case Kind::names:
      return names_of(name, text);
    case Kind::whole_number:
      return whole_number_of(name, text);
    case Kind::number:
      return number_of(name, text);
    case Kind::yes:
      return true;
  }
  return {};
}

bool begins_with_one_of(const std::string& key, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return key.starts_with(prefix); });
}

// Where the help of 'train', which has them all, shows a flag.
const char* topic_of(const std::string& key) {
  if (key.starts_with("data.")) return "Data";
  if (key.starts_with("model.") || key.starts_with("init.")) return "Network";
  if (key.starts_with("train.")) return "Training";
  return key.starts_with("measure.") ? "Measuring" : kOwnFlags;
}

std::string group_of(const ConfigFlag& flag, ConfigUse use,
                     const std::vector<std::string>& changeable) {
  if ((flag.uses & use) == 0) return "";
  if (use == kForTrain) return topic_of(flag.key);
  return begins_with_one_of(flag.key, changeable) ? kOwnFlags : "Flags for a file of weights";
}

}  // namespace

void ConfigFlags::declare(CLI::App& command, ConfigUse use,
                          const std::vector<std::string>& changeable) {
  use_ = use;
  command.add_option("--config", file_, "TOML file with settings")->type_name("FILE");
  for (const auto& flag : kFlags) {
    const std::string key = flag.key;
    const auto help = fmt::format("{} [{}]", flag.help, key);
    if (flag.kind == Kind::yes) {
      const auto set = [this, key] { texts_[key] = "true"; };
      command.add_flag_callback(flag.names, set, help)->group(group_of(flag, use, changeable));
      if (flag.former_name != nullptr) command.add_flag_callback(flag.former_name, set)->group("");
      continue;
    }
    auto* option = command.add_option_function<std::string>(
        flag.names, [this, key](const std::string& text) { texts_[key] = text; }, help);
    option->type_name(type_name_of(flag))->group(group_of(flag, use, changeable));
    if (key == kRepeatable) option->join(',');
  }
  declare_settings(command, overrides_,
                   use == kForTrain ? "any setting, for example train.lr=0.3"
                                    : "any setting, for example measure.train_samples=1000");
}

Config ConfigFlags::config() const {
  auto config = file_.empty() ? Config() : Config::parse(read_file_or_pipe(file_), file_);
  for (const auto& flag : kFlags) {
    const auto given = texts_.find(flag.key);
    if (given == texts_.end()) continue;
    check(use_ == kForTrain || flag.uses != kForTrain, name_in_messages(flag),
          ": is for 'kelvin train'; a trained network has no use for it");
    config.set(flag.key, value_of(flag, given->second));
  }
  for (const auto& assignment : overrides_) config.apply_override(assignment);
  return config;
}

}  // namespace kelvin
