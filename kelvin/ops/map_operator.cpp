#include "kelvin/ops/map_operator.h"

#include <ATen/core/stack.h>
#include <torch/library.h>

#include <limits>
#include <memory>

#include "kelvin/core/check.h"
#include "kelvin/ops/libtorch.h"

namespace kelvin {
namespace {

// What PyTorch knows of the library lasts as long as this.
torch::Library& map_library() {
  static torch::Library library(torch::Library::FRAGMENT, "kelvin", {}, __FILE__, __LINE__);
  return library;
}

Values default_settings(const SimplexMapEntry& entry) {
  Settings settings("", {});
  entry.make(settings);
  return settings.resolved();
}

std::string parameter_text(const std::string& key, const Value& value) {
  if (value.is_boolean()) return "bool " + key + (value.get<bool>() ? "=True" : "=False");
  const char* type = value.is_number_integer() ? "int "
                     : value.is_number()       ? "float "
                     : value.is_string()       ? "str "
                                               : "float[] ";
  return type + key + "=" + value.dump();
}

std::string schema_text(const std::string& name, const SimplexMapEntry& entry) {
  auto text = name + "(Tensor x, float temperature=1.0, *";
  for (const auto& [key, value] : default_settings(entry))
    text += ", " + parameter_text(key, value);
  return text + ", int dim=-1, Tensor? mask=None) -> Tensor";
}

Value setting_of(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  return value.toDoubleVector();
}

class MapKernel : public c10::OperatorKernel {
 public:
  MapKernel(std::string name, SimplexMapEntry entry)
      : name_(std::move(name)), entry_(std::move(entry)) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, c10::Stack* stack) {
    const auto& parameters = handle.schema().arguments();
    const auto count = parameters.size();
    const auto given = torch::jit::last(*stack, count);
    Values values;
    for (size_t i = 2; i + 2 < count; ++i) values[parameters[i].name()] = setting_of(given[i]);
    Settings settings(name_, std::move(values));
    const auto mask = given[count - 1].isNone() ? torch::Tensor() : given[count - 1].toTensor();
    auto weights = mapped_along(name_, entry_.make(settings), given[0].toTensor(),
                                given[1].toDouble(), given[count - 2].toInt(), mask);
    torch::jit::drop(*stack, count);
    torch::jit::push(*stack, std::move(weights));
  }

 private:
  std::string name_;
  SimplexMapEntry entry_;
};

// Whether expanding to sizes of `x` is adding dimensions in front and repeating single ones.
bool can_expand(const torch::Tensor& mask, const torch::Tensor& x) {
  if (mask.dim() > x.dim()) return false;
  for (int64_t i = -mask.dim(); i < 0; ++i) {
    if (mask.size(i) != 1 && mask.size(i) != x.size(i)) return false;
  }
  return true;
}

void check_mask(const std::string& name, const torch::Tensor& mask, const torch::Tensor& x) {
  check(mask.scalar_type() == torch::kBool, name,
        ": the mask must be boolean, true where a logit takes part, is ", mask.dtype());
  if (!has_sizes(mask) || !has_sizes(x)) return;
  check(can_expand(mask, x), name, ": the mask must have the sizes ", x.sizes(),
        " of the logits or expand to them, has ", mask.sizes());
}

}  // namespace

void define_map_operator(const std::string& name, const SimplexMapEntry& entry) {
  const auto schema = schema_text(name, entry);
  map_library().def(schema.c_str());
  map_library().impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(
                                       std::make_unique<MapKernel>(name, entry)));
}

torch::Tensor mapped_along(const std::string& name, const SimplexMap& map, const torch::Tensor& x,
                           double temperature, int64_t dim, const torch::Tensor& mask) {
  check(x.layout() == torch::kStrided, name, ": logits must be dense, are ", x.layout());
  const auto dims = x.dim();
  check(dims == 0 || (dim >= -dims && dim < dims), name, ": dim must be in [", -dims, ", ", dims,
        "), got ", dim);
  const bool is_last = dims == 0 || dim == -1 || dim == dims - 1;
  auto logits = is_last ? x : x.transpose(dim, -1);
  check_logits(name, logits);
  if (mask.defined()) {
    check_mask(name, mask, x);
    const auto whole = mask.expand_as(x);
    logits = logits.masked_fill((is_last ? whole : whole.transpose(dim, -1)).logical_not(),
                                -std::numeric_limits<double>::infinity());
  }
  const auto weights = map(logits, temperature);
  return is_last ? weights : weights.transpose(dim, -1);
}

}  // namespace kelvin
