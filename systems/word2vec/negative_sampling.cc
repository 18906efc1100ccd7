#include "systems/word2vec/negative_sampling.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "data/random.h"
#include "fovea/error.h"

// pair() takes nearly all of the time: the loader chooses the widest vectors of the machine, with
// the loops over a row inside.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOVEA_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOVEA_WIDE
#endif
#define FOVEA_INSIDE inline __attribute__((always_inline))

namespace fovea::systems::word2vec {
namespace {

constexpr size_t kParts = 4;  // of the text; fixed, so that results do not depend on threads
constexpr size_t kWordsBetween = 20000;  // of a part, between two meetings
constexpr size_t kNoiseTable = 1 << 20;

FOVEA_INSIDE float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// gradient += g u; u += g v
FOVEA_INSIDE void exchange(float g, float* u, const float* v, float* gradient, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    gradient[i] += g * u[i];
    u[i] += g * v[i];
  }
}

FOVEA_INSIDE void add(float scale, const float* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

// σ and −log σ at 4096 points of [-8, 8]. Outside, the values at the ends are right to three
// digits.
class Sigmoid {
 public:
  Sigmoid() {
    for (size_t i = 0; i < kPlaces; ++i) {
      const double x = (static_cast<double>(i) + 0.5) / kPlaces * 2 * kReach - kReach;
      value_[i] = static_cast<float>(1 / (1 + std::exp(-x)));
      loss_[i] = static_cast<float>(std::log1p(std::exp(-x)));
    }
  }
  float value(float x) const { return value_[place(x)]; }
  float loss(float x) const { return loss_[place(x)]; }

 private:
  static constexpr size_t kPlaces = 4096;
  static constexpr float kReach = 8;
  static size_t place(float x) {
    return static_cast<size_t>(
        std::clamp((x + kReach) * (kPlaces / (2 * kReach)), 0.0f, static_cast<float>(kPlaces - 1)));
  }
  float value_[kPlaces], loss_[kPlaces];
};

struct Rows {
  std::vector<float> input, output;
  std::vector<uint8_t> input_moved, output_moved;
};

struct Scratch {
  std::vector<float> mean, gradient;
  explicit Scratch(int64_t width)
      : mean(static_cast<size_t>(width)), gradient(static_cast<size_t>(width)) {}
};

const Sigmoid sigmoid;

// The pair (v, target) against the noise; v's gradient is left in scratch.
FOVEA_WIDE float pair(const Plan& plan, float rate, const float* v, int32_t target,
                      const int32_t* negatives, float* output, Scratch& scratch) {
  std::fill(scratch.gradient.begin(), scratch.gradient.end(), 0.0f);
  float loss = 0;
  for (int64_t k = -1; k < plan.negatives; ++k) {
    const int32_t word = k < 0 ? target : negatives[k];
    float* u = output + static_cast<int64_t>(word) * plan.width;
    const float score = dot(u, v, plan.width);
    const float label = k < 0 ? 1.0f : 0.0f;
    loss += sigmoid.loss(k < 0 ? score : -score);
    exchange(rate * (label - sigmoid.value(score)), u, v, scratch.gradient.data(), plan.width);
  }
  return loss;
}

// CBOW: the mean of the context's rows predicts the target, and each row takes its share of the
// gradient.
float bag(const Plan& plan, float rate, const int32_t* context, size_t count, int32_t target,
          const int32_t* negatives, float* input, float* output, Scratch& scratch) {
  const float share = 1.0f / static_cast<float>(count);
  std::fill(scratch.mean.begin(), scratch.mean.end(), 0.0f);
  for (size_t i = 0; i < count; ++i)
    add(share, input + static_cast<int64_t>(context[i]) * plan.width, scratch.mean.data(),
        plan.width);
  const float loss = pair(plan, rate, scratch.mean.data(), target, negatives, output, scratch);
  for (size_t i = 0; i < count; ++i)
    add(share, scratch.gradient.data(), input + static_cast<int64_t>(context[i]) * plan.width,
        plan.width);
  return loss;
}

std::vector<int32_t> noise_table(const std::vector<int64_t>& counts) {
  std::vector<double> powers;
  double total = 0;
  for (const int64_t count : counts)
    total += powers.emplace_back(std::pow(static_cast<double>(count), 0.75));
  std::vector<int32_t> table(kNoiseTable);
  size_t word = 0;
  double reached = powers[0] / total;
  for (size_t i = 0; i < table.size(); ++i) {
    while (static_cast<double>(i) / kNoiseTable >= reached && word + 1 < powers.size())
      reached += powers[++word] / total;
    table[i] = static_cast<int32_t>(word);
  }
  return table;
}

class Part {
 public:
  Part(const Text& text, const Plan& plan, const std::vector<int32_t>& noise,
       const std::vector<float>& keep, size_t words)
      : text_(text),
        plan_(plan),
        noise_(noise),
        keep_(keep),
        words_(words),
        scratch_(plan.width),
        negatives_(static_cast<size_t>(plan.negatives)) {}

  // Reads whole sentences from `sentence` on until about kWordsBetween words are read or `end` is
  // reached; returns where it stopped.
  size_t read(Rows& rows, size_t sentence, size_t end, float rate, uint64_t seed) {
    data::Random random(seed);
    size_t read = 0;
    for (; sentence < end && read < kWordsBetween; ++sentence) {
      const auto from = static_cast<size_t>(text_.sentences[sentence]),
                 to = static_cast<size_t>(text_.sentences[sentence + 1]);
      read += to - from;
      kept_.clear();
      for (size_t i = from; i < to; ++i) {
        const int32_t word = text_.words[i];
        if (keep_[static_cast<size_t>(word)] >= 1 ||
            random.uniform() < keep_[static_cast<size_t>(word)])
          kept_.push_back(word);
      }
      sentence_pairs(rows, rate, random);
    }
    return sentence;
  }
  double loss = 0;
  int64_t pairs = 0;

 private:
  void draw(int32_t target, data::Random& random) {
    for (int32_t& word : negatives_) {
      do word = noise_[random.next() >> 44];
      while (word == target &&
             words_ > 1);  // a negative that is the target would move it both ways
    }
  }
  void sentence_pairs(Rows& rows, float rate, data::Random& random) {
    const auto n = static_cast<int64_t>(kept_.size());
    const auto move = [&](std::vector<uint8_t>& moved, int32_t word) {
      moved[static_cast<size_t>(word)] = 1;
    };
    for (int64_t c = 0; c < n; ++c) {
      const int64_t reach =
          1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(plan_.window)));
      const int64_t low = std::max<int64_t>(0, c - reach),
                    high = std::min(n - 1, c + reach);  // never beyond the ends of the sentence
      if (low == high) continue;
      if (plan_.architecture == Architecture::kCbow) {
        context_.clear();
        for (int64_t o = low; o <= high; ++o)
          if (o != c) context_.push_back(kept_[static_cast<size_t>(o)]);
        draw(kept_[static_cast<size_t>(c)], random);
        loss += bag(plan_, rate, context_.data(), context_.size(), kept_[static_cast<size_t>(c)],
                    negatives_.data(), rows.input.data(), rows.output.data(), scratch_);
        ++pairs;
        for (const int32_t word : context_) move(rows.input_moved, word);
        move(rows.output_moved, kept_[static_cast<size_t>(c)]);
        for (const int32_t word : negatives_) move(rows.output_moved, word);
        continue;
      }
      float* v =
          rows.input.data() + static_cast<int64_t>(kept_[static_cast<size_t>(c)]) * plan_.width;
      move(rows.input_moved, kept_[static_cast<size_t>(c)]);
      for (int64_t o = low; o <= high; ++o) {
        if (o == c) continue;
        const int32_t target = kept_[static_cast<size_t>(o)];
        draw(target, random);
        loss += pair(plan_, rate, v, target, negatives_.data(), rows.output.data(), scratch_);
        add(1.0f, scratch_.gradient.data(), v, plan_.width);
        ++pairs;
        move(rows.output_moved, target);
        for (const int32_t word : negatives_) move(rows.output_moved, word);
      }
    }
  }

  const Text& text_;
  const Plan& plan_;
  const std::vector<int32_t>& noise_;
  const std::vector<float>& keep_;
  size_t words_;
  Scratch scratch_;
  std::vector<int32_t> negatives_, kept_, context_;
};

template <class Work>
void each(size_t count, int threads, const Work& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;  // of any thread: thrown by this one
  const auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int t = 1; t < std::min<int>(threads, static_cast<int>(count)); ++t)
        others.emplace_back(run);
    } catch (const std::system_error&) {  // no more threads: those that started do the work
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

// Each row becomes the mean over the parts that changed it, in every part.
void meet(std::vector<Rows>& parts, std::vector<float> Rows::*values,
          std::vector<uint8_t> Rows::*moved, size_t words, size_t width, int threads) {
  const size_t chunk = (words + kParts - 1) / kParts;
  each(kParts, threads, [&](size_t piece) {
    std::vector<float> mean(width);
    for (size_t word = piece * chunk; word < std::min(words, (piece + 1) * chunk); ++word) {
      size_t count = 0;
      std::fill(mean.begin(), mean.end(), 0.0f);
      for (Rows& part : parts) {
        if (!(part.*moved)[word]) continue;
        add(1.0f, (part.*values).data() + word * width, mean.data(), static_cast<int64_t>(width));
        (part.*moved)[word] = 0;
        ++count;
      }
      if (count == 0) continue;
      for (float& x : mean) x /= static_cast<float>(count);
      for (Rows& part : parts)
        std::copy(mean.begin(), mean.end(),
                  (part.*values).begin() + static_cast<std::ptrdiff_t>(word * width));
    }
  });
}

}  // namespace

double step(const Plan& plan, float rate, const std::vector<int32_t>& context, int32_t target,
            const std::vector<int32_t>& negatives, float* input, float* output) {
  Scratch scratch(plan.width);
  return bag(plan, rate, context.data(), context.size(), target, negatives.data(), input, output,
             scratch);
}

Learned learn(const Text& text, const std::vector<int64_t>& counts, const Plan& plan,
              const std::function<void(double)>& tell) {
  const size_t words = counts.size(), width = static_cast<size_t>(plan.width),
               sentences = text.sentences.size() - 1;
  if (words == 0)
    throw InvalidArgument("text: no word is frequent enough, expected at least one (min_count)");
  const auto total = static_cast<double>(text.words.size());
  std::vector<float> keep(words);
  for (size_t w = 0; w < words; ++w)
    keep[w] = plan.sample > 0
                  ? static_cast<float>(std::min(
                        1.0, std::sqrt(plan.sample * total / static_cast<double>(counts[w]))))
                  : 1.0f;
  const std::vector<int32_t> noise = noise_table(counts);

  Rows first{std::vector<float>(words * width), std::vector<float>(words * width, 0.0f),
             std::vector<uint8_t>(words, 0), std::vector<uint8_t>(words, 0)};
  data::Random random(data::mix(plan.seed, 0x2EC));
  for (float& x : first.input)
    x = static_cast<float>(random.uniform(-0.5, 0.5) / static_cast<double>(width));
  std::vector<Rows> rows(kParts, first);
  std::vector<Part> parts(kParts, Part(text, plan, noise, keep, words));

  Learned out;
  const auto start = std::chrono::steady_clock::now();
  double done = 0;
  for (int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    std::vector<size_t> at, end;
    for (size_t p = 0; p < kParts; ++p) {
      at.push_back(sentences * p / kParts);
      end.push_back(sentences * (p + 1) / kParts);
      parts[p].loss = 0, parts[p].pairs = 0;
    }
    for (uint64_t round = 0; at != end; ++round) {
      const auto rate = static_cast<float>(
          plan.rate * std::max(1e-4, 1 - done / (total * static_cast<double>(plan.epochs))));
      const std::vector<size_t> before = at;
      each(kParts, plan.threads, [&](size_t p) {
        at[p] = parts[p].read(
            rows[p], at[p], end[p], rate,
            data::mix(plan.seed, (static_cast<uint64_t>(epoch) << 40) + (round << 8) + p));
      });
      for (size_t p = 0; p < kParts; ++p)
        done += static_cast<double>(text.sentences[at[p]] - text.sentences[before[p]]);
      meet(rows, &Rows::input, &Rows::input_moved, words, width, plan.threads);
      meet(rows, &Rows::output, &Rows::output_moved, words, width, plan.threads);
      if (tell) tell(done / (total * static_cast<double>(plan.epochs)));
    }
    double loss = 0, pairs = 0;
    for (const Part& part : parts) loss += part.loss, pairs += static_cast<double>(part.pairs);
    out.losses.push_back(pairs > 0 ? loss / pairs : 0);
  }
  out.words_per_second =
      done /
      std::max(1e-9,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  out.input = std::move(rows[0].input);
  out.output = std::move(rows[0].output);
  return out;
}

}  // namespace fovea::systems::word2vec
