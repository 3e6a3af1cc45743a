#include "kelvin/experiment/evaluate/ood_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

using OodNames = std::vector<std::string>;

constexpr auto kNear = "near";
constexpr auto kFar = "far";

Readings means_over(const Readings& readings, const std::string& group, const OodNames& members) {
  const auto is_member = [&](const Reading& reading) {
    return !reading.detector.empty() &&
           std::find(members.begin(), members.end(), reading.ood) != members.end();
  };
  Readings means;                                                // sums, until the end
  std::map<std::pair<std::string, std::string>, size_t> places;  // by detector and name
  std::vector<OodNames> averaged;
  for (const auto& reading : readings) {
    if (!is_member(reading)) continue;
    const auto [place, is_new] =
        places.emplace(std::pair(reading.detector, reading.name), means.size());
    if (is_new) {
      averaged.emplace_back();
      auto& mean = means.emplace_back(reading);
      mean.ood = group;
      mean.value = 0;
      mean.interval.reset();
      for (const char* key : {"ood_samples", "interval"}) mean.definition.erase(key);
    }
    means[place->second].value += reading.value;
    averaged[place->second].push_back(reading.ood);
  }
  for (size_t i = 0; i < means.size(); ++i) {
    means[i].value /= static_cast<double>(averaged[i].size());
    means[i].definition["mean_over"] = averaged[i];
  }
  return means;
}

}  // namespace

OodGroups known_groups(const std::string& dataset) {
  const OodNames far = {"mnist", "svhn"};
  if (dataset == "cifar10") return {.near = {"cifar100"}, .far = far};
  if (dataset == "cifar100") return {.near = {"cifar10"}, .far = far};
  return {};
}

void check_ood_names(const std::string& where, const OodNames& names) {
  // Dumps have the names that the user gives them, datasets have their own.
  const auto remedy = where == "--ood" ? ", as NAME=x.npz" : "";
  std::set<std::string> seen;
  for (const auto& name : names) {
    check(seen.insert(name).second, where, ": '", name,
          "' is there twice; give one of them another name", remedy);
    check(name != kNear && name != kFar, where, ": '", name,
          "' is what the mean over the datasets of --", name,
          " is called; give the data another name", remedy);
  }
}

void check_members(const OodGroups& groups, const OodNames& ood) {
  for (const auto& [key, members] :
       {std::pair("measure.near", groups.near), std::pair("measure.far", groups.far)}) {
    for (const auto& member : members) {
      check(std::find(ood.begin(), ood.end(), member) != ood.end(), key, ": '", member,
            "' is none of the OOD datasets");
    }
  }
}

Readings group_means(const Readings& readings, const OodGroups& groups) {
  auto means = means_over(readings, kNear, groups.near);
  auto far = means_over(readings, kFar, groups.far);
  means.insert(means.end(), far.begin(), far.end());
  return means;
}

}  // namespace kelvin
