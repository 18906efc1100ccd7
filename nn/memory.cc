#include "fovea/nn/memory.h"

#include <ATen/ATen.h>

#include <string>
#include <variant>

#include "fovea/error.h"

namespace fovea::nn {
namespace {

at::Tensor lengths_of(const at::Tensor& bounds) {
  return bounds.slice(0, 1) - bounds.slice(0, 0, -1);
}

// The line each word belongs to, or the story each line does.
at::Tensor owners_of(const at::Tensor& lengths) {
  return at::repeat_interleave(at::arange(lengths.size(0), lengths.options()), lengths);
}

at::Tensor bag(const at::Tensor& weight, const at::Tensor& words, const at::Tensor& bounds,
               const std::optional<at::Tensor>& factors) {
  constexpr int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(weight, words, bounds, /*scale_grad_by_freq=*/false, kSum,
                                       /*sparse=*/false, factors, /*include_last_offset=*/true,
                                       /*padding_idx=*/0));
}

// kFixed: J, which counts the time as the last word, and (J+1)/2J.
double fixed_count(const MemoryOptions& options) {
  return static_cast<double>(options.longest + 1);
}
double middle(const MemoryOptions& options) { return 0.5 + 0.5 / fixed_count(options); }

// 4 (c/d - (d+1)/2d)
at::Tensor around_zero(const at::Tensor& column) {
  const auto d = static_cast<double>(column.size(0));
  return (column - (d + 1) / 2) * (4 / d);
}

// l_cj is a factor of the word plus the product of one of the word and one of the column: two weighted
// bags, and nothing of size words x width.
at::Tensor encoded(const at::Tensor& weight, const MemoryOptions& options, const at::Tensor& words,
                   const at::Tensor& bounds32) {
  const int64_t width = options.width;
  const LineEncoding encoding = options.encoding;
  const at::Tensor bounds = bounds32.to(at::kLong);
  const int64_t lines = bounds.size(0) - 1;
  if (words.numel() == 0) return at::zeros({lines, weight.size(1)}, weight.options());
  if (encoding == LineEncoding::kBag) return bag(weight, words, bounds, std::nullopt);
  const at::Tensor lengths = lengths_of(bounds), line = owners_of(lengths);
  const at::Tensor count = lengths.index_select(0, line).to(weight.scalar_type());  // J
  const at::Tensor place =
      (at::arange(1, words.size(0) + 1, bounds.options()) - bounds.index_select(0, line))
          .to(weight.scalar_type());                                     // j
  const at::Tensor column = at::arange(1, width + 1, weight.options());  // c
  const auto sum = [&](const std::optional<at::Tensor>& plain, const at::Tensor& of_word,
                       const at::Tensor& of_column) {
    return bag(weight, words, bounds, plain) +
           bag(weight, words, bounds, of_word) * of_column.repeat({weight.size(1) / width});
  };
  if (encoding == LineEncoding::kCentred)
    return sum(std::nullopt, (place - (count + 1) / 2) / count, around_zero(column));
  if (encoding == LineEncoding::kFixed)
    return sum(std::nullopt, place / fixed_count(options) - middle(options), around_zero(column));
  const at::Tensor share = place / count;
  return sum(1 - share, 2 * share - 1, column / static_cast<double>(width));
}

void check_bounds(const at::Tensor& bounds, const char* name, int64_t total) {
  if (bounds.dim() != 1 || bounds.size(0) < 1 || bounds.scalar_type() != at::kInt)
    throw InvalidArgument(std::string(name) + ": expected int32 bounds, one more than items");
  const int64_t last = bounds[-1].item<int64_t>();
  if (last != total)
    throw InvalidArgument(std::string(name) + ": the last bound is " + std::to_string(last) +
                          ", expected " + std::to_string(total));
}

void check(const Stories& s, int64_t slots) {
  check_bounds(s.lines, "lines", s.words.size(0));
  check_bounds(s.stories, "stories", s.lines.size(0) - 1);
  check_bounds(s.question_bounds, "question_bounds", s.question_words.size(0));
  if (s.question_bounds.size(0) != s.stories.size(0))
    throw InvalidArgument("question_bounds: " + std::to_string(s.question_bounds.size(0) - 1) +
                          " questions, expected " + std::to_string(s.items()) +
                          ", one for each story");
  if (slots == 0 || s.items() == 0) return;
  const int64_t longest = lengths_of(s.stories).max().item<int64_t>();
  if (longest > slots)
    throw InvalidArgument("stories: " + std::to_string(longest) + " lines, expected at most " +
                          std::to_string(slots) + " (slots)");
}

}  // namespace

MemoryImpl::MemoryImpl(const MemoryOptions& options) : options_(options) {
  if (options.words < 1 || options.width < 1 || options.hops < 1)
    throw InvalidArgument("memory: words, width and hops expected to be positive");
  if (options.slots < 0) throw InvalidArgument("memory: slots expected not to be negative");
  if (options.empty_slots == EmptySlots::kWeighed && options.slots == 0)
    throw InvalidArgument("memory: slots: 0, expected a number of them (empty ones are weighed)");
  if (options.encoding == LineEncoding::kFixed && options.longest < 1)
    throw InvalidArgument("memory: longest: " + std::to_string(options.longest) +
                          ", expected the words of the longest line (kFixed)");
  reset();
}

void MemoryImpl::reset() {
  const bool adjacent = options_.tying == Tying::kAdjacent;
  const int64_t wide = options_.width * (adjacent ? options_.hops + 1 : 2);
  const auto drawn = [&](int64_t rows, int64_t columns) {
    return at::randn({rows, columns}) * options_.deviation;
  };
  const auto of_words = [&](int64_t columns) {
    at::Tensor weight = drawn(options_.words, columns);
    weight[0].zero_();
    return weight;
  };
  line_weight_ = register_parameter("line_weight", of_words(wide));
  if (options_.slots > 0)
    time_weight_ = register_parameter("time_weight", drawn(options_.slots, wide));
  if (adjacent) return;
  question_weight_ = register_parameter("question_weight", of_words(options_.width));
  answer_weight_ = register_parameter("answer_weight", of_words(options_.width));
  hop_ = register_module(
      "hop",
      torch::nn::Linear(torch::nn::LinearOptions(options_.width, options_.width).bias(false)));
}

at::Tensor MemoryImpl::block(const at::Tensor& blocks, int64_t index) const {
  return blocks.narrow(1, index * options_.width, options_.width);
}

at::Tensor MemoryImpl::lines_of(const Stories& stories) const {
  const at::Tensor lines = encoded(line_weight_, options_, stories.words, stories.lines);
  if (options_.slots == 0 || lines.size(0) == 0) return lines;
  at::Tensor age = stories.ages;
  if (!age.defined()) {
    const at::Tensor ends = stories.stories.slice(0, 1).to(at::kLong);
    const at::Tensor owner = owners_of(lengths_of(stories.stories).to(at::kLong));
    age = ends.index_select(0, owner) - 1 - at::arange(lines.size(0), ends.options());
  }
  const at::Tensor times = time_weight_.index_select(0, age);
  if (options_.encoding != LineEncoding::kFixed) return lines + times;
  const at::Tensor column = at::arange(1, options_.width + 1, lines.options());
  const at::Tensor factor = 1 + (1 - middle(options_)) * around_zero(column);
  return lines + times * factor.repeat({lines.size(1) / options_.width});
}

// With m empty slots, whose scores are 0, lines keep Z / (Z + m) of the softmax, Z their own sum.
at::Tensor MemoryImpl::mixed_with_empty(const Hop& hop, const Stories& stories) const {
  const Attended seen = attend_full(hop.query, hop.key, hop.value, hop.choices);
  const at::Tensor empty = options_.slots - lengths_of(stories.stories).to(seen.lse.scalar_type());
  return seen.output.squeeze(1) * at::sigmoid(seen.lse - empty.log().unsqueeze(1));
}

Recall MemoryImpl::recall(const Stories& stories, const Normaliser& normaliser) {
  check(stories, options_.slots);
  const bool adjacent = options_.tying == Tying::kAdjacent;
  const at::Tensor lines = lines_of(stories);
  Recall out;
  out.state = encoded(adjacent ? block(line_weight_, 0).contiguous() : question_weight_, options_,
                      stories.question_words, stories.question_bounds);
  const bool weighed =
      options_.empty_slots == EmptySlots::kWeighed && std::holds_alternative<Softmax>(normaliser);
  const at::Tensor one_each = at::arange(stories.items() + 1, stories.stories.options());
  for (int64_t hop = 0; hop < options_.hops; ++hop) {
    const Hop& read = out.hops.emplace_back(Hop{out.state.unsqueeze(1),
                                                block(lines, adjacent ? hop : 0).unsqueeze(1),
                                                block(lines, adjacent ? hop + 1 : 1).unsqueeze(1),
                                                {.score = Dot{1.0},
                                                 .normaliser = normaliser,
                                                 .structure = Ragged{one_each, stories.stories}}});
    const at::Tensor mixed =
        weighed ? mixed_with_empty(read, stories)
                : attend(read.query, read.key, read.value, read.choices).squeeze(1);
    out.state = (adjacent ? out.state : hop_(out.state)) + mixed;
  }
  return out;
}

at::Tensor MemoryImpl::answer(const at::Tensor& state) {
  const at::Tensor weight =
      options_.tying == Tying::kAdjacent ? block(line_weight_, options_.hops) : answer_weight_;
  return at::constant_pad_nd(state.matmul(weight.slice(0, 1).t()), {1, 0});  // 0 is no word
}

}  // namespace fovea::nn
