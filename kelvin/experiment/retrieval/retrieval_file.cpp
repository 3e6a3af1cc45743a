#include "kelvin/experiment/retrieval/retrieval_file.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/formats/safetensors_file.h"
#include "kelvin/model/tensors_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kConfigKey = "kelvin.retrieval";
constexpr auto kExtension = ".safetensors";
constexpr int64_t kMostBytes = int64_t{1} << 30;

}  // namespace

void save_retrieval(const fs::path& path, const RetrievalSettings& settings,
                    const RetrievalNetwork& network) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : network.parameters()) tensors[name] = tensor.detach();
  write_safetensors(path, tensors, {{kConfigKey, settings.resolved.to_toml()}});
}

TrainedRetrieval load_retrieval(const fs::path& path) {
  const auto where = path.string();
  const auto stored = parse_safetensors(read_stored_file(path, kMostBytes), where);
  const auto config = stored.metadata.find(kConfigKey);
  check(config != stored.metadata.end(), where,
        ": is no network for max retrieval that kelvin trained (its metadata have no ", kConfigKey,
        ")");
  auto settings = RetrievalSettings::from(Config::parse(config->second, where));
  auto network = RetrievalNetwork::from(read_tensors(path), where);
  check(network.shape().width == settings.shape.width &&
            network.shape().classes == settings.shape.classes,
        where, ": its tensors are not those of its config");
  return {.settings = std::move(settings), .network = std::move(network)};
}

std::vector<fs::path> retrieval_files(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const auto& path : paths) {
    check(fs::exists(path), path.string(), ": no such file or folder");
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const auto before = files.size();
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == kExtension) files.push_back(entry.path());
    }
    check(files.size() > before, path.string(), ": holds no *", kExtension);
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  check(!files.empty(), "max retrieval: needs at least one network");
  return files;
}

std::array<double, 5> load_beta(const fs::path& path) {
  const auto where = path.string();
  const auto config = Config::load(path);
  std::vector<double> coefficients;
  auto settings = config.section("beta");
  settings.read("coefficients", coefficients);
  std::array<double, 5> beta{};
  check(coefficients.size() == beta.size(), where, ": beta.coefficients must be ", beta.size(),
        " numbers, of the highest power first, got ", coefficients.size());
  for (const double each : coefficients) {
    check(std::isfinite(each), where, ": beta.coefficients must be finite, got ", each);
  }
  std::copy(coefficients.begin(), coefficients.end(), beta.begin());
  return beta;
}

}  // namespace kelvin
