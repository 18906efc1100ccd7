#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace fovea::train {
namespace {

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

std::string in_words(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

Progress::Progress(Style style, std::FILE* out) : style_(style), out_(out) {}

Progress::Style Progress::style_of_stderr() {
  return isatty(STDERR_FILENO) ? Style::kBar : Style::kLines;
}

Progress::~Progress() { erase(); }

void Progress::title(std::string text) {
  title_ = std::move(text);
  start_ = Clock::now();
  first_done_ = -1;
}

bool Progress::due() const {
  if (style_ == Style::kSilent) return false;
  // A terminal gets ten updates a second. A log file gets a line only after a long silence.
  const auto pause =
      style_ == Style::kBar ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  const auto reference = last_ == Clock::time_point{} ? start_ : last_;
  return Clock::now() - reference >= pause;
}

void Progress::step(int64_t done, int64_t total, const std::string& note) {
  if (first_done_ < 0) first_done_ = done;  // a resumed run starts part-way
  if (!due()) return;
  last_ = Clock::now();
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const int64_t here = done - first_done_;
  const std::string left =
      here > 0 && total > done
          ? fmt::format("  {} left", in_words(seconds / static_cast<double>(here) *
                                              static_cast<double>(total - done)))
          : "";
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  if (style_ == Style::kLines) {
    std::fputs(fmt::format("{}{}{:3.0f}%  {}{}\n", title_, title_.empty() ? "" : "  ", 100 * share,
                           note, left)
                   .c_str(),
               out_);
    std::fflush(out_);
    return;
  }
  constexpr int kBar = 24;
  const int filled = static_cast<int>(share * kBar);
  std::string text = fmt::format("{}{}", title_, title_.empty() ? "" : "  ");
  for (int i = 0; i < kBar; ++i) text += i < filled ? "━" : "─";
  text += fmt::format(" {:3.0f}%  {}{}", 100 * share, note, left);
  // The bar's 24 characters take three bytes each; the rest is mostly ASCII.
  const auto limit = static_cast<size_t>(terminal_width() - 1 + 2 * kBar);
  if (text.size() > limit) text.resize(limit);
  std::fputs(("\r\x1b[K" + text).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void Progress::line(const std::string& text) {
  if (style_ == Style::kSilent) return;
  erase();
  std::fputs((text + "\n").c_str(), out_);
  std::fflush(out_);
}

void Progress::finish() { erase(); }

void Progress::erase() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace fovea::train
