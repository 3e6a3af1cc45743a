#include "kelvin/formats/weights_file.h"

#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/safetensors_file.h"
#include "kelvin/formats/torch_file.h"

namespace kelvin {
namespace {

constexpr int64_t kMostWeightBytes = int64_t{1} << 36;

bool is_of_torch(std::string_view file) {
  return file.starts_with("PK\x03\x04") || file.starts_with('\x80');
}

// A wrong path may lead to something huge: its beginning is looked at before all of it is read.
void check_begins_like_weights(const std::filesystem::path& path) {
  check_is_file(path);
  constexpr size_t kShown = 16;
  std::string head(kShown, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), kShown);
  head.resize(static_cast<size_t>(file.gcount()));
  const bool may_be_safetensors = head.size() > 8 && head[8] == '{';
  check(may_be_safetensors || is_of_torch(head), path.string(),
        ": must be a file of weights, safetensors or of torch.save, begins with '",
        shown_text(head), "'");
}

}  // namespace

StoredTensors read_weights_file(const std::filesystem::path& path) {
  const auto where = path.string();
  check_begins_like_weights(path);
  auto file = read_stored_file(path, kMostWeightBytes);
  // The brace must come first: a header length may begin with the same bytes as other formats.
  if (file.size() > 8 && file[8] == '{') return parse_safetensors(std::move(file), where);
  return parse_torch_file(std::move(file), where);
}

}  // namespace kelvin
