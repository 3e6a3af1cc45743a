#include "app/bench/race_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.0f}", static_cast<double>(bytes) / (1 << 20));
}

std::string milliseconds(double value) { return fmt::format("{:.2f}", value); }

std::string rate_text(const SideResult& side) {
  return fmt::format("{:.0f}", median_of(side.images_per_second));
}

// "1.32", "1.29 to 1.35", "1.25"
std::vector<std::string> ratio_cells(const RaceResult& result) {
  const auto ratios = result.ratios();
  if (ratios.empty()) return {"", "", ""};
  const auto [smallest, largest] = std::minmax_element(ratios.begin(), ratios.end());
  return {fmt::format("{:.2f}", median_of(ratios)),
          fmt::format("{:.2f} to {:.2f}", *smallest, *largest),
          fmt::format("{:.2f}", result.aim())};
}

Json json_of(const SideResult& side) {
  return {{"images_per_second", median_of(side.images_per_second)},
          {"images_per_second_of_rounds", side.images_per_second},
          {"first_losses", side.losses},
          {"peak_memory_bytes", side.memory}};
}

Json json_of(const RaceResult& result) {
  auto kelvin = json_of(result.kelvin);
  kelvin["step_ms"] = result.parts.all;
  kelvin["data_ms"] = result.parts.data;
  kelvin["forward_ms"] = result.parts.forward;
  kelvin["backward_ms"] = result.parts.backward;
  kelvin["optimizer_ms"] = result.parts.optimizer;
  kelvin["gflops"] = result.gflops(result.kelvin);
  Json row = {{"name", result.name},
              {"precision", result.precision()},
              {"batch_size", result.batch_size()},
              {"parameters", result.parameters},
              {"macs_per_image", result.macs},
              {"kelvin", kelvin},
              {"peak_gflops", result.peak_gflops},
              {"peak_precision", result.peak_precision},
              {"share_of_peak", result.gflops(result.kelvin) / result.peak_gflops},
              {"settings", result.settings}};
  if (!result.pytorch) return row;
  row["pytorch"] = json_of(*result.pytorch);
  row["pytorch"].update(result.about_pytorch);
  row["pytorch"]["gflops"] = result.gflops(*result.pytorch);
  row["aim"] = result.aim();
  const auto ratios = result.ratios();
  row["ratio"] = {{"median", median_of(ratios)},
                  {"smallest", *std::min_element(ratios.begin(), ratios.end())},
                  {"largest", *std::max_element(ratios.begin(), ratios.end())}};
  return row;
}

Table table_of(const std::vector<std::string>& columns) {
  Table table;
  for (const auto& name : columns) {
    const bool is_text = name == "model" || name == "precision" || name == "spread";
    table.columns.push_back({name, is_text ? Alignment::left : Alignment::right});
  }
  return table;
}

std::string share_text(const RaceResult& result) {
  return fmt::format("{:.0f}", 100 * result.gflops(result.kelvin) / result.peak_gflops);
}

}  // namespace

Table race_table(const std::vector<RaceResult>& results) {
  auto table = table_of({"model", "precision", "batch", "kelvin images/s", "PyTorch images/s",
                         "ratio", "spread", "aim", "GFLOP/s", "peak", "% of peak", "step ms",
                         "data", "forward", "backward", "optimizer", "kelvin MiB", "PyTorch MiB"});
  for (const auto& result : results) {
    const auto& parts = result.parts;
    const auto ratio = ratio_cells(result);
    table.rows.push_back(
        {result.name, result.precision(), std::to_string(result.batch_size()),
         rate_text(result.kelvin), result.pytorch ? rate_text(*result.pytorch) : "", ratio[0],
         ratio[1], ratio[2], fmt::format("{:.1f}", result.gflops(result.kelvin)),
         fmt::format("{:.1f}", result.peak_gflops), share_text(result), milliseconds(parts.all),
         milliseconds(parts.data), milliseconds(parts.forward), milliseconds(parts.backward),
         milliseconds(parts.optimizer), mebibytes(result.kelvin.memory),
         result.pytorch ? mebibytes(result.pytorch->memory) : ""});
  }
  return table;
}

Table sweep_table(const std::vector<RaceResult>& results) {
  auto table = table_of({"model", "precision", "batch", "parameters", "step ms", "images/s",
                         "GFLOP/s", "% of peak", "MiB"});
  for (const auto& result : results) {
    table.rows.push_back({result.name, result.precision(), std::to_string(result.batch_size()),
                          std::to_string(result.parameters), milliseconds(result.parts.all),
                          rate_text(result.kelvin),
                          fmt::format("{:.1f}", result.gflops(result.kelvin)), share_text(result),
                          mebibytes(result.kelvin.memory)});
  }
  return table;
}

std::vector<std::string> race_notes(const std::vector<RaceResult>& results) {
  std::vector<std::string> notes;
  const auto has = [&](const auto& property) {
    return std::any_of(results.begin(), results.end(), property);
  };
  if (has([](const auto& r) { return r.precision() == "bf16" && r.peak_precision == "fp32"; })) {
    notes.emplace_back(
        "bf16: this CPU does not multiply bfloat16; kelvin rounds what enters and leaves float32 "
        "products, so the peak is that of float32");
  }
  return notes;
}

Json race_document(const std::vector<RaceResult>& results) {
  auto rows = Json::array();
  for (const auto& result : results) rows.push_back(json_of(result));
  Json document = {{"rows", rows}, {"notes", race_notes(results)}};
  if (!results.empty()) document["versions"] = results.front().versions;
  return document;
}

}  // namespace kelvin
