#include "app/config_flags.h"

#include <fmt/format.h>

#include <array>

#include "app/flag_values.h"

namespace kelvin {
namespace {

enum class Kind { text, names, whole_number, number, yes };

struct ConfigFlag {
  const char* names;  // for CLI11; the last one is used in messages
  const char* key;
  Kind kind;
  const char* help;
};

constexpr std::array kFlags = {
    ConfigFlag{"--model", "model.name", Kind::text, "architecture, see 'kelvin list models'"},
    ConfigFlag{"--dataset", "data.name", Kind::text, "what to learn, see 'kelvin list datasets'"},
    ConfigFlag{"--ood", "data.ood", Kind::names, "out-of-distribution data sets"},
    ConfigFlag{"--train-samples", "data.train_samples", Kind::whole_number,
               "training images, as equally of each class as possible; 0 is all"},
    ConfigFlag{"--test-samples", "data.test_samples", Kind::whole_number, "likewise"},
    ConfigFlag{"--validation-samples", "data.validation_samples", Kind::whole_number,
               "training images that are held out"},
    ConfigFlag{"--classes", "data.classes", Kind::names, "10: the first ten; otherwise names"},
    ConfigFlag{"--augment", "data.augment", Kind::text,
               "none, flip, crop, crop-flip or resized-crop-flip"},
    ConfigFlag{"--image-size", "data.image_size", Kind::whole_number, "side of the images"},
    ConfigFlag{"--pretrained", "init.pretrained", Kind::text,
               "file of weights to start from: safetensors, or a dict saved by torch"},
    ConfigFlag{"--reset-head", "init.reset_head", Kind::yes,
               "the last layer is drawn anew, for other classes than the weights have"},
    ConfigFlag{"--target-logits-norm", "init.target_logits_norm", Kind::number,
               "scale the last layer so that the logits have this norm per sample at step 0"},
    ConfigFlag{"-T,--temperature", "train.temperature", Kind::number, "of the softmax in the loss"},
    ConfigFlag{"--temperature-schedule", "train.temperature_schedule", Kind::text,
               "constant, linear, cosine, step, cyclic, warm or learned"},
    ConfigFlag{"--temperature-end", "train.temperature_end", Kind::number,
               "where linear, cosine, cyclic and warm go to"},
    ConfigFlag{"--loss", "train.loss", Kind::text, "see 'kelvin list losses'"},
    ConfigFlag{"--smoothing", "train.loss_smoothing", Kind::number,
               "of the labels, for the loss cross_entropy"},
    ConfigFlag{"--epochs", "train.epochs", Kind::whole_number, "passes over the training data"},
    ConfigFlag{"-b,--batch-size", "train.batch_size", Kind::whole_number, "images per step"},
    ConfigFlag{"--lr", "train.lr", Kind::number, "learning rate"},
    ConfigFlag{"--sched", "train.schedule", Kind::text,
               "how the learning rate changes: constant, cosine, step or one-cycle"},
    ConfigFlag{"--lr-scale-with-t", "train.lr_scale_with_t", Kind::text,
               "multiply the learning rate by T (linear) or its square root (sqrt), or not (none)"},
    ConfigFlag{"--opt", "train.optimizer", Kind::text,
               "sgd, adam, or with decoupled weight decay sgdw, adamw"},
    ConfigFlag{"--momentum", "train.momentum", Kind::number, "of SGD"},
    ConfigFlag{"--weight-decay", "train.weight_decay", Kind::number, "of the optimizer"},
    ConfigFlag{"--clip-grad", "train.clip_norm", Kind::number,
               "largest norm of the gradient; 0 is any"},
    ConfigFlag{"--model-ema-decay", "train.ema", Kind::number,
               "use a moving average of the weights that forgets at this pace; 0 is none"},
    ConfigFlag{"--precision", "train.precision", Kind::text, "of products: fp32 or bf16"},
    ConfigFlag{"--plain", "train.plain", Kind::yes,
               "train with LibTorch's own operations, without kelvin's faster ones"},
    ConfigFlag{"--device", "device", Kind::text, "cpu, cuda or cuda:N"},
    ConfigFlag{"--checkpoint-steps", "train.checkpoint_steps", Kind::whole_number,
               "save the state of training so often, not only after each epoch"},
    ConfigFlag{"--steps-per-decade", "measure.steps_per_decade", Kind::whole_number,
               "look at the network also at so many steps from 1 to 10, from 10 to 100, ..."},
    ConfigFlag{"--warmup-epochs", "train.warmup_epochs", Kind::number,
               "epochs in which the learning rate rises"},
    ConfigFlag{"--seed", "seed", Kind::whole_number, "of everything random"},
    ConfigFlag{"--measures", "measure.names", Kind::names,
               "what to measure, see 'kelvin list measures'"},
    ConfigFlag{"--detectors", "measure.detectors", Kind::names,
               "all, or names; see 'kelvin list detectors'"},
    ConfigFlag{"--near", "measure.near", Kind::names,
               "foreign data sets that are like the own one, for a mean over them"},
    ConfigFlag{"--far", "measure.far", Kind::names, "foreign data sets that are not"},
    ConfigFlag{"--eval-temperature", "measure.temperature", Kind::number,
               "of the softmax when measuring; otherwise that of training"},
    ConfigFlag{"--memory", "measure.memory", Kind::text,
               "that measures may hold together, such as 4GiB"},
    ConfigFlag{"--protocol", "measure.layer_spectrum.protocol", Kind::text,
               "of the spectra of layers: sketch, tunnel or exact"},
};

std::string name_in_messages(const ConfigFlag& flag) {
  const std::string names = flag.names;
  return names.substr(names.rfind(',') + 1);
}

const char* type_name_of(Kind kind) {
  switch (kind) {
    case Kind::text:
      return "NAME";
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

Value value_of(const ConfigFlag& flag, const std::string& text) {
  const auto name = name_in_messages(flag);
  switch (flag.kind) {
    case Kind::text:
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

}  // namespace

void ConfigFlags::declare(CLI::App& command) {
  command.add_option("--config", file_, "TOML file with settings")->type_name("FILE");
  for (const auto& flag : kFlags) {
    const std::string key = flag.key;
    if (flag.kind == Kind::yes) {
      command.add_flag_callback(
          flag.names, [this, key] { texts_[key] = "true"; },
          fmt::format("{} [{}]", flag.help, key));
      continue;
    }
    command
        .add_option_function<std::string>(
            flag.names, [this, key](const std::string& text) { texts_[key] = text; },
            fmt::format("{} [{}]", flag.help, key))
        ->type_name(type_name_of(flag.kind));
  }
  command.add_option("SETTING", overrides_, "any setting as key=value, for example train.lr=0.3")
      ->type_name("key=value");
}

Config ConfigFlags::config() const {
  auto config = file_.empty() ? Config() : Config::load(file_);
  for (const auto& flag : kFlags) {
    const auto given = texts_.find(flag.key);
    if (given != texts_.end()) config.set(flag.key, value_of(flag, given->second));
  }
  for (const auto& assignment : overrides_) config.apply_override(assignment);
  return config;
}

}  // namespace kelvin
