#include "kelvin/data/batch_stream.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Two are enough to hide an uneven step; more would only cost memory.
constexpr size_t kAhead = 2;

int64_t end_of_batch(int64_t begin, int64_t batch_size, int64_t samples) {
  const auto end = std::min(begin + batch_size, samples);
  return samples - end == 1 ? samples : end;
}

}  // namespace

int64_t count_batches(int64_t samples, int64_t batch_size) {
  const auto whole = samples / batch_size;
  return whole + (samples % batch_size > (whole > 0 ? 1 : 0) ? 1 : 0);
}

BatchStream::BatchStream(const BatchMaker& maker, const Images& images, std::vector<int64_t> order,
                         int64_t batch_size, int64_t epoch)
    : maker_(maker),
      images_(images),
      order_(std::move(order)),
      batch_size_(batch_size),
      epoch_(epoch) {
  check(batch_size >= 1, "BatchStream: batch_size must be at least 1, got ", batch_size);
  thread_ = std::thread([this] { make_all(); });
}

BatchStream::~BatchStream() {
  {
    const std::lock_guard lock(mutex_);
    is_unwanted_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool BatchStream::has_room() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_unwanted_ || ready_.size() < kAhead; });
  return !is_unwanted_;
}

void BatchStream::make_all() {
  const at::NoGradGuard no_grad;  // the thread is new, and so is its mode
  std::exception_ptr failure;
  try {
    const auto samples = static_cast<int64_t>(order_.size());
    int64_t end = 0;
    for (int64_t begin = 0; begin < samples && has_room(); begin = end) {
      end = end_of_batch(begin, batch_size_, samples);
      auto batch = maker_.make(images_, {order_.begin() + begin, order_.begin() + end}, epoch_);
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  is_complete_ = true;
  changed_.notify_all();
}

std::optional<Batch> BatchStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_complete_ || !ready_.empty(); });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  auto batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace kelvin
