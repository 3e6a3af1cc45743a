#pragma once

#include <chrono>
#include <string>

namespace kelvin {

// What the user waits for.
struct Activity {
  std::string label;      // "train"
  double done = 0;        // of total; fractions are welcome
  double total = 0;       // 0: unknown
  std::string rate = {};  // "5321 images/s"
  std::string note = {};  // "loss 3.21"
};

// How far a piece of work is, on stderr: one line that is drawn over itself on a
// terminal, a few plain lines elsewhere, nothing when quiet.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // As often as the caller likes; drawn at most ten times a second.
  void show(const Activity& activity);

  // A line that stays.
  void say(const std::string& line);

  // Leaves the terminal as if nothing had been drawn.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  double remaining_seconds(const Activity& activity) const;  // negative: unknown
  void draw(const Activity& activity);
  void print_plainly(const Activity& activity);

  bool quiet_;
  bool on_terminal_;
  bool drawn_ = false;
  std::string label_;
  Clock::time_point started_ = {};  // of the activity with this label
  Clock::time_point shown_ = {};
  double done_at_start_ = 0;
  int percent_shown_ = 0;
};

}  // namespace kelvin
