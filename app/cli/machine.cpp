#include "app/cli/machine.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// What stands behind "key :" in /proc/cpuinfo, of the first processor.
std::string cpuinfo_field(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return "";
}

std::set<std::string> cpu_flags() {
  std::istringstream words(cpuinfo_field("flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  return flags;
}

bool has_avx512(const std::set<std::string>& flags) {
  return flags.contains("avx512f") && flags.contains("avx512bw") && flags.contains("avx512vl") &&
         flags.contains("avx512dq");
}

// Cores that a container's quota allows; infinite without one.
double quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return HUGE_VAL;  // "max 100000"
  return quota / period;
}

// Freed memory stays with the process: every step allocates the same large tensors, and getting
// zeroed pages from the system again and again is slow.  No allocation is a mapping of its own,
// which would go back when it is freed, and the heap is never cut.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 16 << 20);
}

void set_default(const char* variable, const char* value) {
  ::setenv(variable, value, /*overwrite=*/0);
}

}  // namespace

int64_t usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int64_t cores = sched_getaffinity(0, sizeof mask, &mask) == 0
                            ? CPU_COUNT(&mask)
                            : ::sysconf(_SC_NPROCESSORS_ONLN);
  const double quota = quota_cores();
  if (quota >= static_cast<double>(cores)) return std::max<int64_t>(cores, 1);
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(quota)), 1);
}

int64_t default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr || *text == '\0') return usable_cores();
  const std::string list(text);
  const auto word = list.substr(0, list.find(','));  // one number for each level of nesting
  int64_t threads = 0;
  const auto* end = word.data() + word.size();
  const bool is_number = std::from_chars(word.data(), end, threads).ptr == end;
  check(is_number && threads >= 1 && threads <= kMostThreads,
        "OMP_NUM_THREADS: must be a whole number from 1 to ", kMostThreads, ", got '", list, "'");
  return threads;
}

void prepare_process(int64_t threads) {
  const auto count = std::to_string(threads);
  ::setenv("OMP_NUM_THREADS", count.c_str(), /*overwrite=*/1);
  ::setenv("OPENBLAS_NUM_THREADS", count.c_str(), /*overwrite=*/1);
  // Threads that wait for each other spin for a moment only: where something else runs beside them,
  // be it the BLAS's own threads, they would keep it from what they wait for.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) set_default("GOMP_SPINCOUNT", "20000");
  if (has_avx512(cpu_flags())) set_default("ATEN_CPU_CAPABILITY", "avx512");
  // Products of bfloat16 by AMX end with an illegal instruction: Linux wants to be asked for its
  // tiles, which oneDNN of Debian 12 does not do.
  set_default("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16");
  keep_freed_memory();
}

nlohmann::ordered_json machine_description() {
  nlohmann::ordered_json machine;
  machine["cpu"] = cpuinfo_field("model name");
  auto features = nlohmann::ordered_json::array();
  const auto flags = cpu_flags();
  for (const char* flag : {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq",
                           "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16"}) {
    if (flags.contains(flag)) features.push_back(flag);
  }
  machine["cpu_features"] = std::move(features);
  machine["cores"] = usable_cores();
  machine["memory_bytes"] =
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  utsname system{};
  if (::uname(&system) == 0) {
    machine["os"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  return machine;
}

}  // namespace kelvin
