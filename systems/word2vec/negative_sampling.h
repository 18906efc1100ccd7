// Skip-gram and continuous bag of words with negative sampling (Mikolov et al. 2013), as a plain
// loop:
//   maximise log σ(u_o·v_c) + Σ_k log σ(−u_k·v_c), k drawn in proportion to count^0.75
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace fovea::systems::word2vec {

struct Text {
  std::vector<int32_t> words;      // sentence after sentence; rarer words are left out already
  std::vector<int64_t> sentences;  // where each begins, and the end
};

enum class Architecture { kSkipGram, kCbow };

struct Plan {
  Architecture architecture = Architecture::kSkipGram;
  int64_t width = 50, window = 5, negatives = 5, epochs = 5;
  double sample = 1e-4;  // t: a word of frequency f is kept with probability √(t/f)
  double rate = 0.025;   // falls linearly to a ten-thousandth of itself
  uint64_t seed = 1;
  int threads = 1;
};

struct Learned {
  std::vector<float> input, output;  // [words, width]: v, u
  double words_per_second = 0;       // of the text, those not kept included
  std::vector<double> losses;        // mean over the pairs of each epoch
};

// The text is cut into a fixed number of parts. Between two synchronisations each part changes its
// own copy of the rows; then a row becomes the mean over the parts that changed it. So the result
// does not depend on the number of threads, and no thread waits for a row of another. `tell(share
// done)` is called between them; it may throw to stop.
Learned learn(const Text& text, const std::vector<int64_t>& counts, const Plan& plan,
              const std::function<void(double)>& tell);

// One step on one centre and its context, public so that its gradient can be tested. Returns the
// loss before the step; every row is moved.
double step(const Plan& plan, float rate, const std::vector<int32_t>& context, int32_t target,
            const std::vector<int32_t>& negatives, float* input, float* output);

}  // namespace fovea::systems::word2vec
