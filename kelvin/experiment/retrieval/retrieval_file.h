#pragma once

#include <array>
#include <filesystem>
#include <vector>

#include "kelvin/experiment/retrieval/retrieval_settings.h"

namespace kelvin {

// A network for max retrieval on disk: safetensors with the parameters' names of PyTorch, and its
// config as TOML in the metadata.
struct TrainedRetrieval {
  RetrievalSettings settings;
  RetrievalNetwork network;
};

void save_retrieval(const std::filesystem::path& path, const RetrievalSettings& settings,
                    const RetrievalNetwork& network);
TrainedRetrieval load_retrieval(const std::filesystem::path& path);

// The files that these paths mean: files themselves, and all *.safetensors directly in folders, in
// the order of their names.  An Error if there is none.
std::vector<std::filesystem::path> retrieval_files(const std::vector<std::filesystem::path>& paths);

// The coefficients of an adaptive temperature that was fitted to heads of one's own: TOML with
// beta.coefficients, the highest power first, and what they were fitted to beside them.
std::array<double, 5> load_beta(const std::filesystem::path& path);

}  // namespace kelvin
