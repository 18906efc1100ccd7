// Structured attention: what its generators promise, its models' identities, and runs of both tasks.
#include <torch/torch.h>

#include <map>
#include <set>

#include "data/formats/text.h"
#include "fovea/error.h"
#include "systems/structured_attention/generated.h"
#include "systems/structured_attention/model.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::structured_attention {
namespace {

using Words = std::vector<std::string>;

// The value of a formula modulo a prime, and how deep its operators stand.
struct Value {
  uint64_t number = 0;
  int64_t depth = 0;
};
constexpr uint64_t kPrime = 1'000'003;

uint64_t joined(uint64_t a, uint64_t b, const std::string& by) {
  return by == "+" ? (a + b) % kPrime : a * b % kPrime;
}

Value prefix(const Words& words, size_t& at) {
  if (words.at(at) != "(") return {std::stoull(words.at(at++)), 0};
  const std::string& by = words.at(++at);
  Value out = prefix(words, ++at);
  while (words.at(at) != ")") {
    const Value next = prefix(words, at);
    out = {joined(out.number, next.number, by), std::max(out.depth, next.depth)};
  }
  ++at;
  return {out.number, out.depth + 1};
}

// Within a pair of parentheses there is one operator only, so that none binds closer.
uint64_t infix(const Words& words, size_t& at) {
  const auto term = [&] {
    if (words.at(at) != "(") return static_cast<uint64_t>(std::stoull(words.at(at++)));
    const uint64_t inner = infix(words, ++at);
    EXPECT_EQ(words.at(at), ")");
    ++at;
    return inner;
  };
  uint64_t out = term();
  std::set<std::string> operators;
  while (at < words.size() && words[at] != ")") {
    const std::string by = words[at++];
    operators.insert(by);
    out = joined(out, term(), by);
  }
  EXPECT_EQ(operators.size(), 1u);
  return out;
}

TEST(Formulas, KeepTheirValueAndHaveTheirDepth) {
  for (const int64_t depth : {1, 2, 3}) {
    const translate::Corpus corpus = generate_formulas(7, depth, 50);
    EXPECT_EQ(corpus.train.size(), 50u);
    for (const translate::Pair& pair : corpus.train) {
      SCOPED_TRACE(pair.source + " -> " + pair.target);
      const Words source = data::words(pair.source), target = data::words(pair.target);
      size_t at = 0, in = 0;
      const Value value = prefix(source, at);
      EXPECT_EQ(at, source.size());
      EXPECT_EQ(value.depth, depth);
      EXPECT_EQ(value.number, infix(target, in));
      EXPECT_EQ(in, target.size());
      for (const metrics::Link& link : pair.links.sure)
        EXPECT_EQ(source.at(static_cast<size_t>(link.source)),
                  target.at(static_cast<size_t>(link.target)));
    }
  }
}

// The rule, written a second time: dark words at most two apart belong together, a lone one is no
// run.
std::vector<int32_t> run_of(const Words& words) {
  std::vector<int32_t> best, now;
  for (int32_t i = 0; i < static_cast<int32_t>(words.size()); ++i) {
    if (!words[static_cast<size_t>(i)].starts_with("dark")) continue;
    if (!now.empty() && i - now.back() > 2) now.clear();
    while (!now.empty() && now.back() + 1 < i) now.push_back(now.back() + 1);
    now.push_back(i);
    if (now.size() > 1 && now.size() > best.size()) best = now;
  }
  return best;
}

TEST(Spans, HaveOneRunWhoseCommonestColourIsTheLabel) {
  const text::Corpus corpus = generate_spans(5);
  EXPECT_EQ(corpus.documents.size(), 5500u);
  for (size_t i = 0; i < 300; ++i) {
    const text::Document& document = corpus.documents[i];
    SCOPED_TRACE(document.texts.at(0));
    const Words words = data::words(document.texts.at(0));
    EXPECT_EQ(document.truth_words, run_of(words));
    std::map<std::string, size_t> counts;
    for (const int32_t at : document.truth_words) {
      const std::string& word = words[static_cast<size_t>(at)];
      ++counts[word.starts_with("dark") ? word.substr(4) : word];
    }
    EXPECT_GT(2 * counts[document.label], document.truth_words.size());
  }
}

// Cross-check 5 of the systems: a chain without pairwise scores is sigmoid attention.
TEST(Spans, AChainWithoutPairwiseScoresIsSigmoidAttention) {
  const auto model = [](Weighing weighing) {
    torch::manual_seed(3);
    return SpanModel({.embedding = {.words = 20, .width = 6}, .weighing = weighing});
  };
  SpanModel chain = model(Weighing::kStructured), sigmoid = model(Weighing::kSigmoid);
  const text::Batch batch{torch::tensor({5, 6, 7, 8, 9, 4, 5}, torch::kLong),
                          torch::tensor({0, 4, 7}, torch::kInt32),
                          torch::tensor({0, 1, 2}, torch::kInt32), torch::zeros({2}, torch::kLong)};
  EXPECT_TRUE(torch::allclose(chain.logits(batch), sigmoid.logits(batch), 1e-5, 1e-6));
  const torch::NoGradGuard no_grad;
  chain.pairwise[1][1] = 2.0f;
  EXPECT_FALSE(torch::allclose(chain.logits(batch), sigmoid.logits(batch), 1e-3, 1e-3));
}

// An empty document has nothing to look at: its logits are the bias, as if it stood alone.
TEST(Spans, AnEmptyDocumentDisturbsNoOther) {
  for (const Weighing weighing :
       {Weighing::kStructured, Weighing::kSoftmax, Weighing::kSigmoid, Weighing::kNone}) {
    torch::manual_seed(3);
    SpanModel model({.embedding = {.words = 20, .width = 6}, .weighing = weighing});
    const auto logits = [&](const std::vector<int64_t>& words, const std::vector<int32_t>& bounds) {
      const auto items = static_cast<int64_t>(bounds.size()) - 1;
      return model.logits({torch::tensor(words, torch::kLong), torch::tensor(bounds, torch::kInt32),
                           torch::arange(items + 1, torch::kInt32),
                           torch::zeros({items}, torch::kLong)});
    };
    const torch::Tensor both = logits({5, 6, 7}, {0, 3, 3});
    EXPECT_TRUE(both.isfinite().all().item<bool>());
    EXPECT_TRUE(torch::allclose(both[0], logits({5, 6, 7}, {0, 3})[0], 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(both[1], logits({}, {0, 0})[0], 1e-5, 1e-6));
  }
}

class StructuredRuns : public test::Runs {};

TEST_F(StructuredRuns, ChainsFindRunsThatSoftmaxCannot) {
  const auto accuracy = [&](const std::string& weighing) {
    const Json report = train(weighing, {.system = "structured-attention",
                                         .set = {"task=spans", "weighing=" + weighing},
                                         .epochs = 10});
    return report.at("metrics").at("accuracy").get<double>();
  };
  EXPECT_GT(accuracy("structured"), 0.95);
  EXPECT_LT(accuracy("softmax"), 0.7);
  check_every_verb("structured", "red darkblue darkblue green darkblue yellow\n");
}

TEST_F(StructuredRuns, FormulasTakeEveryVerb) {
  for (const std::string weighing : {"structured", "softmax", "sigmoid", "none"}) {
    SCOPED_TRACE(weighing);
    const Json report =
        train(weighing, {.system = "structured-attention",
                         .set = {"weighing=" + weighing, "pairs=64", "width=8", "state=16"},
                         .epochs = 1});
    const double reached = report.at("metrics").at("before_failure").get<double>();
    EXPECT_GE(reached, 0.0);
    EXPECT_LE(reached, 1.0);
    check_every_verb(weighing, "( + 1 ( * 2 3 ) )\n");
  }
}

TEST_F(StructuredRuns, UnitsOfTheOtherTaskAreRefusedByName) {
  EXPECT_NE(said([&] {
              train("run", {.system = "structured-attention",
                            .set = {"task=spans", "tokens=characters"},
                            .epochs = 1});
            }).find("tokens: 'characters', expected spaces, words or pieces"),
            std::string::npos);
}

TEST(OptionValues, OfThreeDeclarationsTheLastOneHolds) {
  const OptionValues options({Option("a", 1, "first"), Option("b", 7, "another"),
                              Option("a", 2, "second"), Option("a", 3, "third")});
  EXPECT_EQ(options.integer("a"), 3);
  EXPECT_EQ(options.declared().size(), 2u);
}

}  // namespace
}  // namespace fovea::systems::structured_attention
