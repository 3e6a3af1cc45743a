#include "app/bench/bench_side.h"

#include <unistd.h>

#include "app/bench/scripts.h"
#include "app/cli/compute.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json BenchSide::ask(const Json& order) {
  process_.send(order.dump());
  const auto line = process_.receive();
  auto answer = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  check(answer.is_object(), process_.name(), ": must answer with a JSON object, got '", line, "'");
  check(!answer.contains("error"), answer.value("error", ""));
  return answer;
}

std::unique_ptr<BenchSide> kelvin_side(const BenchThreads& threads, const fs::path& folder) {
  const std::vector<std::string> words = {executable_path().string(), "bench", "step", "--threads",
                                          std::to_string(threads.count)};
  return std::make_unique<BenchSide>("kelvin's side", words, folder / "kelvin.log");
}

std::unique_ptr<BenchSide> pytorch_side(const std::string& python, const Json& start,
                                        const fs::path& folder, Json& about, std::string& missing) {
  if (::access(python.c_str(), X_OK) != 0) {
    missing = python + ": no such program";
    return nullptr;
  }
  const auto script = folder / "pytorch_step.py";
  write_file_atomically(script, bench_scripts().at("pytorch_step"));
  const std::vector<std::string> words = {python, script.string()};
  auto side = std::make_unique<BenchSide>("PyTorch's side", words, folder / "pytorch.log");
  about = side->ask(start);
  if (!about.contains("missing")) return side;
  missing = about.at("missing");
  return nullptr;
}

}  // namespace kelvin
