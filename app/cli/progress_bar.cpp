#include "app/cli/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "app/cli/human_text.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr double kSecondsBetweenDrawings = 0.1;
constexpr double kSecondsBetweenLines = 5;
constexpr double kSecondsBetweenLinesWithoutNews = 60;
constexpr int kBarWidth = 20;

bool stderr_is_terminal() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

double fraction_of(const Activity& activity) {
  return activity.total > 0 ? std::clamp(activity.done / activity.total, 0.0, 1.0) : 0;
}

std::string bar(double fraction) {
  const auto filled = static_cast<size_t>(fraction * kBarWidth);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

}  // namespace

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), on_terminal_(stderr_is_terminal()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(const Activity& activity) {
  if (quiet_) return;
  const auto now = Clock::now();
  if (activity.label != label_) {
    label_ = activity.label;
    started_ = now;
    done_at_start_ = activity.done;
    percent_shown_ = 0;
    shown_ = {};
  }
  const double since_shown = std::chrono::duration<double>(now - shown_).count();
  if (on_terminal_) {
    if (since_shown < kSecondsBetweenDrawings && activity.done < activity.total) return;
    draw(activity);
  } else {
    const int percent = static_cast<int>(100 * fraction_of(activity));
    const bool is_first = shown_ == Clock::time_point{};
    const bool has_news = percent / 10 > percent_shown_ / 10;
    const bool is_due = is_first || (has_news && since_shown >= kSecondsBetweenLines) ||
                        since_shown >= kSecondsBetweenLinesWithoutNews;
    if (!is_due) return;
    percent_shown_ = percent;
    print_plainly(activity);
  }
  shown_ = now;
}

double ProgressBar::remaining_seconds(const Activity& activity) const {
  const double gained = activity.done - done_at_start_;
  if (activity.total <= 0 || gained <= 0) return -1;
  const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
  return elapsed * (activity.total - activity.done) / gained;
}

void ProgressBar::draw(const Activity& activity) {
  auto line = activity.label;
  if (activity.total > 0) {
    const double fraction = fraction_of(activity);
    line += fmt::format(" {:3.0f}% [{}]", 100 * fraction, bar(fraction));
  }
  if (!activity.rate.empty()) line += " " + activity.rate;
  if (const double left = remaining_seconds(activity); left >= 0) {
    line += ", " + short_duration(left) + " left";
  }
  if (!activity.note.empty()) line += ", " + activity.note;
  line = shown_line(line);
  line.resize(std::min(line.size(), terminal_columns() - 1));
  steer_terminal(fmt::format("\r{}\x1b[K", line));
  drawn_ = true;
}

void ProgressBar::print_plainly(const Activity& activity) {
  auto line = activity.label + ":";
  if (activity.total > 0) line += fmt::format(" {:.0f} %", 100 * fraction_of(activity));
  if (!activity.rate.empty()) line += ", " + activity.rate;
  if (const double left = remaining_seconds(activity); left >= 0) {
    line += ", " + short_duration(left) + " left";
  }
  if (!activity.note.empty()) line += ", " + activity.note;
  print_for_people(fmt::format("{}\n", line));
}

void ProgressBar::say(const std::string& line) {
  if (quiet_) return;
  clear();
  print_for_people(fmt::format("{}\n", line));
}

void ProgressBar::clear() {
  if (!drawn_) return;
  steer_terminal("\r\x1b[K");
  drawn_ = false;
}

}  // namespace kelvin
