#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kelvin/kernels/winograd.h"

namespace kelvin {

// All bits set: a NaN in bfloat16 and in float32.  What a kernel reads must be what it wrote.
inline std::shared_ptr<void> nan_memory(int64_t bytes) {
  const auto memory = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes) + 64, '\xff');
  const auto place = reinterpret_cast<uintptr_t>(memory->data());
  return {memory, memory->data() + (64 - place % 64)};
}

// One range that is all of it.
inline WinogradWorkers whole_ranges(int64_t threads = 1) {
  return {.threads = threads,
          .loop = [](int64_t count, int64_t, const auto& work) { work(0, count); },
          .memory = nan_memory};
}

// Every place alone, from the last to the first, so that none may write what is another's.
inline WinogradWorkers single_places(int64_t threads = 1) {
  return {.threads = threads,
          .loop =
              [](int64_t count, int64_t, const auto& work) {
                for (auto i = count - 1; i >= 0; --i) work(i, i + 1);
              },
          .memory = nan_memory};
}

// Notes how long loops are.
inline WinogradWorkers noting(std::vector<int64_t>& counts, int64_t threads = 1) {
  return {.threads = threads,
          .loop =
              [&counts](int64_t count, int64_t, const auto& work) {
                counts.push_back(count);
                work(0, count);
              },
          .memory = nan_memory};
}

}  // namespace kelvin
