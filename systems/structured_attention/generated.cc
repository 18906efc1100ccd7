#include "systems/structured_attention/generated.h"

#include <array>

#include "data/random.h"
#include "translate/corpus/generated.h"

namespace fovea::systems::structured_attention {
namespace {

using data::Random;

// ---- formulas -----------------------------------------------------------------------------------

constexpr std::array<const char*, 2> kOperators = {"+", "*"};
constexpr uint64_t kNumbers = 21;

struct Formula {
  std::string symbol;  // an operator or a number
  std::vector<Formula> arguments = {};
};

// Operators in exactly `depth` levels: one argument has the full depth, the others may have less.
Formula draw_formula(Random& random, int64_t depth, bool whole) {
  if (depth == 0 || (!whole && random.below(2) == 0))
    return {std::to_string(random.below(kNumbers))};
  Formula out{kOperators[random.below(kOperators.size())]};
  const uint64_t count = 2 + random.below(2), deepest = random.below(count);
  for (uint64_t i = 0; i < count; ++i)
    out.arguments.push_back(draw_formula(random, depth - 1, whole && i == deepest));
  return out;
}

// A symbol, and its place in the source.
struct Symbol {
  int32_t place;
  std::string text;
};

// Writes a formula in prefix form to the builder, and returns its infix form.
std::vector<Symbol> transduce(const Formula& formula, translate::Builder& builder) {
  if (formula.arguments.empty()) return {{builder.source(formula.symbol), formula.symbol}};
  std::vector<Symbol> out = {{builder.source("("), "("}};
  const int32_t place = builder.source(formula.symbol);
  for (const Formula& argument : formula.arguments) {
    if (out.size() > 1) out.push_back({place, formula.symbol});
    const std::vector<Symbol> inner = transduce(argument, builder);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  out.push_back({builder.source(")"), ")"});
  return out;
}

// ---- spans --------------------------------------------------------------------------------------

const std::vector<std::string> kColours = {"red", "green", "blue", "yellow", "brown"};

struct Place {
  size_t colour;
  bool dark, in_run;
};

size_t other_colour(Random& random, size_t than) {
  const size_t colour = random.below(kColours.size() - 1);
  return colour < than ? colour : colour + 1;
}

// Both ends are dark, no two light words are neighbours, and more than half have one colour.
std::vector<Place> draw_run(Random& random, size_t label) {
  const size_t length = 4 + random.below(5);
  std::vector<Place> run;
  for (size_t i = 0; i < length; ++i) {
    const bool light = i > 0 && i + 1 < length && run.back().dark && random.below(3) == 0;
    run.push_back({i <= length / 2 ? label : other_colour(random, label), !light, true});
  }
  for (size_t i = length; i > 1; --i) std::swap(run[i - 1].colour, run[random.below(i)].colour);
  return run;
}

text::Document draw_span(Random& random) {
  const size_t label = random.below(kColours.size()), against = other_colour(random, label);
  std::vector<Place> all;
  // The run, and lone dark words, each with at least two light ones before the next.
  const auto light = [&](uint64_t count) {
    for (; count > 0; --count) all.push_back({random.below(kColours.size()), false, false});
  };
  const uint64_t lone = 2 + random.below(3), at = random.below(lone + 1);
  light(random.below(3));
  for (uint64_t i = 0; i <= lone; ++i) {
    if (i > 0) light(2 + random.below(2));
    if (i != at) {
      all.push_back({against, true, false});
      continue;
    }
    const std::vector<Place> run = draw_run(random, label);
    all.insert(all.end(), run.begin(), run.end());
  }
  light(random.below(3));
  text::Document out;
  out.label = kColours[label];
  std::string& line = out.texts.emplace_back();
  for (size_t i = 0; i < all.size(); ++i) {
    line += (i > 0 ? " " : "") + std::string(all[i].dark ? "dark" : "") + kColours[all[i].colour];
    if (all[i].in_run) out.truth_words.push_back(static_cast<int32_t>(i));
  }
  return out;
}

}  // namespace

translate::Corpus generate_formulas(uint64_t seed, int64_t depth, int64_t train) {
  return translate::make_corpus(
      seed, 0x3100 + static_cast<uint64_t>(depth),
      [depth](Random& random) {
        translate::Builder builder;
        const std::vector<Symbol> infix = transduce(draw_formula(random, depth, true), builder);
        // Around the whole formula the target has no parentheses.
        for (size_t i = 1; i + 1 < infix.size(); ++i)
          builder.target(infix[i].place, {infix[i].text});
        return builder.done();
      },
      train);
}

text::Corpus generate_spans(uint64_t seed) {
  text::Corpus corpus;
  Random random(data::mix(seed, 0x3101));
  for (const auto& [count, split] :
       {std::pair(4000, &corpus.splits.train), std::pair(500, &corpus.splits.validation),
        std::pair(1000, &corpus.splits.test)})
    for (int i = 0; i < count; ++i) {
      split->push_back(static_cast<int64_t>(corpus.documents.size()));
      corpus.documents.push_back(draw_span(random));
    }
  return corpus;
}

}  // namespace fovea::systems::structured_attention
