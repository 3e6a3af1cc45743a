#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kelvin/data/batches.h"

namespace kelvin {

// How many batches an epoch has.  A single image that is left over joins the batch before it: batch
// normalisation would have nothing to take a variance of.
int64_t count_batches(int64_t samples, int64_t batch_size);

// The batches of one epoch in order, made on a thread of its own while the network computes.  The
// maker and the images must outlive it.
class BatchStream {
 public:
  BatchStream(const BatchMaker& maker, const Images& images, std::vector<int64_t> order,
              int64_t batch_size, int64_t epoch);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Nothing after the last one.  Throws what making the batch threw.
  std::optional<Batch> next();

 private:
  void make_all();
  bool has_room();  // waits for it; false if the stream is no longer wanted

  const BatchMaker& maker_;
  const Images& images_;
  const std::vector<int64_t> order_;
  const int64_t batch_size_;
  const int64_t epoch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool is_complete_ = false;
  bool is_unwanted_ = false;
  std::thread thread_;
};

}  // namespace kelvin
