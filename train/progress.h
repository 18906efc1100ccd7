// Progress of a run on standard error: a bar on a terminal, an occasional line elsewhere, nothing
// where it is turned off.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace fovea::train {

class Progress {
 public:
  enum class Style { kBar, kLines, kSilent };
  explicit Progress(Style, std::FILE* out = stderr);
  // A bar where standard error is a terminal, lines otherwise.
  static Style style_of_stderr();
  ~Progress();

  void title(std::string text);  // stands before everything: "word-sum seed 2 of 5"
  // `done` of `total` steps; `note` is text such as "epoch 3/10  loss 0.412". Cheap enough to call
  // at each step.
  void step(int64_t done, int64_t total, const std::string& note);
  bool due() const;  // whether step() would draw now; check it before you build a costly note
  void line(const std::string& text);  // a line that stays
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void erase();

  Style style_;
  std::FILE* out_;
  std::string title_;
  Clock::time_point start_ = Clock::now(), last_{};
  int64_t first_done_ = -1;
  bool drawn_ = false;
};

// "42 s", "3 min 20 s", "1 h 05 min".
std::string in_words(double seconds);

}  // namespace fovea::train
