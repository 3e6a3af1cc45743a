#include "kelvin/formats/weights_file.h"

#include <string>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/formats/safetensors_file.h"
#include "kelvin/formats/shown_text.h"
#include "kelvin/formats/stored_file.h"
#include "kelvin/formats/torch_file.h"

namespace kelvin {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 36;

}  // namespace

StoredTensors read_weights_file(const std::filesystem::path& path) {
  const auto where = path.string();
  auto file = read_stored_file(path, kMostBytes);
  // The brace must come first: a header length may begin with the same bytes as other formats.
  if (file.size() > 8 && file[8] == '{') return parse_safetensors(std::move(file), where);
  const bool is_of_torch = file.starts_with("PK\x03\x04") || file.starts_with('\x80');
  if (is_of_torch) return parse_torch_file(std::move(file), where);
  check(false, where, ": must be a file of weights, safetensors or of torch.save, begins with '",
        shown_text(std::string_view(file).substr(0, 16)), "'");
  return {};
}

}  // namespace kelvin
