#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

// Detector scores of both populations; a higher score means in distribution.
struct Scores {
  std::string detector;
  std::string ood;
  std::vector<double> id_scores;
  std::vector<double> ood_scores;
};

// As DETECTOR@OOD.csv with the columns population, score; makes the folder.
void write_scores(const std::filesystem::path& folder, const Scores& scores);

// All files of a folder, by detector and dataset; none if there is no such folder.
std::vector<Scores> load_scores(const std::filesystem::path& folder);

}  // namespace kelvin
