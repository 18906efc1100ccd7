// Multi-head attention (Vaswani et al. 2017) answering "who did what to whom" in one look.
//
//   Z_h = attend(q W_h^Q, X W_h^K, X W_h^V),   O = [Z_1 … Z_H] W^O
//
// Sentences have free word order; a suffix marks who acts (-a) and who is acted on (-o). A word's
// vector is the sum of its stem's and its suffix's. One query reads the sentence, and three answers
// are read off its output by one linear map. A head can only give a mean of words; in a mean of two
// nouns nothing says which had which suffix. Three heads can look at three words.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <istream>
#include <ostream>

#include "data/batches.h"
#include "data/file.h"
#include "data/random.h"
#include "data/text.h"
#include "fovea/nn/multi_head.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/task.h"

namespace fovea::systems::multi_head {
namespace {

const std::vector<std::string> kNouns = {"dog",   "cat",   "fox",  "hen",   "wolf",  "bear", "king",
                                         "girl",  "boy",   "monk", "crow",  "mouse", "lion", "goat",
                                         "clown", "nurse", "poet", "thief", "judge", "queen"};
const std::vector<std::string> kVerbs = {"sees",   "hears",   "bites",   "finds",  "calls",
                                         "helps",  "follows", "paints",  "greets", "feeds",
                                         "scares", "teaches", "carries", "visits", "praises",
                                         "robs",   "kisses",  "chases",  "thanks", "warns"};
const std::vector<std::string> kOthers = {"today",  "often",   "gladly", "here", "again",
                                          "slowly", "at-dawn", "never",  "soon", "abroad"};
const std::array<const char*, 3> kSlots = {"who", "did what", "to whom"};
constexpr int64_t kClasses = 20, kTrain = 4000, kValidation = 500, kTest = 1000;
constexpr int64_t kUnknown = 1;  // stems: 0 is padding; suffixes: 0 none, 1 -a, 2 -o
enum Suffix : int64_t { kNone = 0, kDoer = 1, kDoneTo = 2 };

struct Sentence {
  std::vector<std::string> words;
  std::vector<int64_t> stems, suffixes;
  std::array<int64_t, 3> answers = {-1, -1, -1},
                         places = {-1, -1, -1};  // noun, verb, noun; and where they stand
};

int64_t stem_id(std::string_view stem) {
  int64_t id = kUnknown;
  for (const auto* list : {&kNouns, &kVerbs, &kOthers}) {
    for (const std::string& word : *list) {
      ++id;
      if (word == stem) return id;
    }
  }
  return kUnknown;
}
const int64_t kStems =
    kUnknown + 1 + static_cast<int64_t>(kNouns.size() + kVerbs.size() + kOthers.size());

Sentence sentence_of(const std::vector<std::string>& words) {
  Sentence out;
  out.words = words;
  for (const std::string& word : words) {
    const bool doer = word.ends_with("-a"), done = word.ends_with("-o");
    out.stems.push_back(
        stem_id(doer || done ? std::string_view(word).substr(0, word.size() - 2) : word));
    out.suffixes.push_back(doer ? kDoer : done ? kDoneTo : kNone);
  }
  return out;
}

Sentence draw(data::Random& random) {
  const std::array<int64_t, 3> answers = {static_cast<int64_t>(random.below(kNouns.size())),
                                          static_cast<int64_t>(random.below(kVerbs.size())),
                                          static_cast<int64_t>(random.below(kNouns.size()))};
  std::vector<std::pair<std::string, int>> words = {
      {kNouns[static_cast<size_t>(answers[0])] + "-a", 0},
      {kVerbs[static_cast<size_t>(answers[1])], 1},
      {kNouns[static_cast<size_t>(answers[2])] + "-o", 2}};
  for (uint64_t n = random.below(4); n > 0; --n) words.emplace_back(random.choice(kOthers), -1);
  random.shuffle(words);
  std::vector<std::string> texts;
  for (const auto& word : words) texts.push_back(word.first);
  Sentence out = sentence_of(texts);
  out.answers = answers;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].second >= 0)
      out.places[static_cast<size_t>(words[i].second)] = static_cast<int64_t>(i);
  }
  return out;
}

struct Model : torch::nn::Module {
  Model(int64_t width, int64_t heads) {
    stem = register_module(
        "stem", torch::nn::Embedding(torch::nn::EmbeddingOptions(kStems, width).padding_idx(0)));
    suffix = register_module("suffix", torch::nn::Embedding(3, width));
    query = register_parameter("query", torch::randn({1, 1, width}));
    attention = register_module(
        "attention", nn::MultiHead(nn::MultiHeadOptions{.width = width, .heads = heads}));
    out = register_module("out", torch::nn::Linear(width, 3 * kClasses));
  }
  torch::nn::Embedding stem{nullptr}, suffix{nullptr};
  torch::Tensor query;
  nn::MultiHead attention{nullptr};
  torch::nn::Linear out{nullptr};
};

class MultiHeadTask : public GradientTask {
 public:
  explicit MultiHeadTask(const Setting& setting) : setting_(setting) {}

  void read(const Source& source) override {
    for (Part* part : {&train_, &validation_, &test_}) part->clear();
    if (!source.path.empty()) {
      if (!source.all_test) {
        read_sentences(source.path + "/train.txt", train_);
        read_sentences(source.path + "/val.txt", validation_);
      }
      read_sentences(source.path + "/test.txt", test_);
      return;
    }
    data::Random random(data::mix(source.seed, 26));
    for (const auto& [part, count] :
         {std::pair{&train_, kTrain}, {&validation_, kValidation}, {&test_, kTest}})
      for (int64_t i = 0; i < count; ++i) part->push_back(draw(random));
  }
  Written write() const override {
    Written out{.truth = "truth.jsonl, where the three answers stand"};
    for (const auto& [name, part] :
         {std::pair("train", &train_), std::pair("val", &validation_), std::pair("test", &test_)}) {
      for (size_t i = 0; i < part->size(); ++i) {
        const Sentence& sentence = (*part)[i];
        out.files[std::string(name) + ".txt"] +=
            fmt::format("{}\n", fmt::join(sentence.words, " "));
        out.files["truth.jsonl"] += Json{{"split", name},
                                         {"line", i + 1},
                                         {"who", sentence.places[0]},
                                         {"did_what", sentence.places[1]},
                                         {"to_whom", sentence.places[2]}}
                                        .dump() +
                                    "\n";
      }
    }
    return out;
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(setting_.options.integer("width"),
                                            setting_.options.integer("heads"));
  }
  int64_t items(Split split) const override { return static_cast<int64_t>(part(split).size()); }

  Loss loss(const Batch& batch) override {
    const Read read = read_items(train_, batch.items);
    return {
        torch::nn::functional::cross_entropy(answers(read).flatten(0, 1), read.answers.flatten()),
        static_cast<int64_t>(batch.items.size())};
  }
  Evaluation evaluate(Split) override;
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;

 private:
  using Part = std::vector<Sentence>;
  struct Read {
    torch::Tensor words;    // [B, S, width]
    torch::Tensor lengths;  // int32 [B], on the host
    torch::Tensor answers;  // [B, 3]
  };
  // A sentence a line: one known noun with -a, one with -o and one known verb say its answers.
  static void read_sentences(const std::string& path, Part& to) {
    const std::string text = data::read_file(path);
    data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
      Sentence sentence = sentence_of(data::words(content));
      for (size_t i = 0; i < sentence.words.size(); ++i) {
        const int64_t suffix = sentence.suffixes[i], stem = sentence.stems[i] - kUnknown - 1;
        const auto nouns = static_cast<int64_t>(kNouns.size()),
                   verbs = static_cast<int64_t>(kVerbs.size());
        const bool noun = stem >= 0 && stem < nouns, verb = stem >= nouns && stem < nouns + verbs;
        const size_t slot = noun && suffix == kDoer     ? 0
                            : verb && suffix == kNone   ? 1
                            : noun && suffix == kDoneTo ? 2
                                                        : kSlots.size();
        if (slot == kSlots.size()) continue;
        sentence.answers[slot] = noun ? stem : stem - nouns;
        sentence.places[slot] = static_cast<int64_t>(i);
      }
      for (size_t slot = 0; slot < kSlots.size(); ++slot)
        if (sentence.places[slot] < 0)
          throw data::FileError(path, line,
                                fmt::format("no answer to '{}', expected a noun with -a, a verb "
                                            "and a noun with -o, found {}",
                                            kSlots[slot], data::shown(content)));
      to.push_back(std::move(sentence));
    });
  }
  const Part& part(Split split) const {
    return split == Split::kTrain ? train_ : split == Split::kValidation ? validation_ : test_;
  }
  Read read_items(const Part&, std::span<const int64_t> items);
  torch::Tensor answers(const Read&);  // [B, 3, classes]
  torch::Tensor looks(const Read&);    // [B, heads, S]
  std::array<int64_t, 3> heads_of_slots(const Part&);

  const Setting setting_;
  Part train_, validation_, test_;
  std::shared_ptr<Model> model_;
};

MultiHeadTask::Read MultiHeadTask::read_items(const Part& from, std::span<const int64_t> items) {
  size_t longest = 1;
  for (const int64_t i : items)
    longest = std::max(longest, from[static_cast<size_t>(i)].words.size());
  const auto rows = static_cast<int64_t>(items.size()), width = static_cast<int64_t>(longest);
  torch::Tensor stems = torch::zeros({rows, width}, torch::kLong),
                suffixes = torch::zeros({rows, width}, torch::kLong);
  torch::Tensor answers = torch::zeros({rows, 3}, torch::kLong),
                lengths = torch::zeros({rows}, torch::kInt);
  for (int64_t b = 0; b < rows; ++b) {
    const Sentence& s = from[static_cast<size_t>(items[static_cast<size_t>(b)])];
    std::copy(s.stems.begin(), s.stems.end(), stems.data_ptr<int64_t>() + b * width);
    std::copy(s.suffixes.begin(), s.suffixes.end(), suffixes.data_ptr<int64_t>() + b * width);
    std::copy(s.answers.begin(), s.answers.end(), answers.data_ptr<int64_t>() + b * 3);
    lengths.data_ptr<int32_t>()[b] = static_cast<int32_t>(s.words.size());
  }
  return {model_->stem(stems.to(setting_.device)) + model_->suffix(suffixes.to(setting_.device)),
          lengths, answers.to(setting_.device)};
}

torch::Tensor MultiHeadTask::answers(const Read& read) {
  const torch::Tensor query = model_->query.expand({read.words.size(0), 1, -1});
  return model_
      ->out(
          model_->attention->forward(query, read.words, read.words, {.key_lengths = read.lengths}))
      .view({-1, 3, kClasses});
}

torch::Tensor MultiHeadTask::looks(const Read& read) {
  const torch::Tensor query = model_->query.expand({read.words.size(0), 1, -1});
  return model_->attention->weights(query, read.words, {.key_lengths = read.lengths})
      .weights.squeeze(2)
      .cpu();
}

std::vector<int64_t> everything(size_t count) {
  std::vector<int64_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

// Nothing says which head answers what: each question is given the head that most often looks at
// its word, no head twice where there are enough.
std::array<int64_t, 3> MultiHeadTask::heads_of_slots(const Part& p) {
  const torch::Tensor best = looks(read_items(p, everything(p.size()))).argmax(-1);  // [B, heads]
  const int64_t heads = best.size(1);
  std::array<std::vector<int64_t>, 3> hits;
  for (size_t s = 0; s < 3; ++s) {
    hits[s].assign(static_cast<size_t>(heads), 0);
    for (size_t i = 0; i < p.size(); ++i)
      for (int64_t h = 0; h < heads; ++h)
        hits[s][static_cast<size_t>(h)] +=
            best[static_cast<int64_t>(i)][h].item<int64_t>() == p[i].places[s];
  }
  std::array<int64_t, 3> chosen = {0, 0, 0};
  int64_t most = -1;
  for (int64_t a = 0; a < heads; ++a)
    for (int64_t b = 0; b < heads; ++b)
      for (int64_t c = 0; c < heads; ++c) {
        if (heads >= 3 && (a == b || b == c || a == c)) continue;
        const int64_t sum = hits[0][static_cast<size_t>(a)] + hits[1][static_cast<size_t>(b)] +
                            hits[2][static_cast<size_t>(c)];
        if (sum > most) most = sum, chosen = {a, b, c};
      }
  return chosen;
}

Evaluation MultiHeadTask::evaluate(Split split) {
  const Part& p = part(split);
  const torch::NoGradGuard no_grad;
  const Read read = read_items(p, everything(p.size()));
  const torch::Tensor scores = answers(read), right = scores.argmax(-1).eq(read.answers);
  Evaluation out;
  out.items = static_cast<int64_t>(p.size());
  out.metrics = {
      {"loss", torch::nn::functional::cross_entropy(scores.flatten(0, 1), read.answers.flatten())
                   .item<double>()},
      {"accuracy", right.to(torch::kDouble).mean().item<double>()},
      {"exact", right.all(1).to(torch::kDouble).mean().item<double>()}};
  const std::array<int64_t, 3> heads = heads_of_slots(p);
  const torch::Tensor best = looks(read).argmax(-1);
  double hits = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t s = 0; s < 3; ++s)
      hits += best[static_cast<int64_t>(i)][heads[s]].item<int64_t>() == p[i].places[s];
  out.attention = {{"hit_rate", hits / static_cast<double>(3 * p.size())}};
  return out;
}

std::string said(const torch::Tensor& scores) {
  const torch::Tensor best = scores.argmax(-1).cpu();
  return kNouns[static_cast<size_t>(best[0].item<int64_t>())] + " " +
         kVerbs[static_cast<size_t>(best[1].item<int64_t>())] + " " +
         kNouns[static_cast<size_t>(best[2].item<int64_t>())];
}

// A line is a sentence; the answer is who did what to whom, in that order.
void MultiHeadTask::predict(Input input, std::ostream& out) {
  answer_lines(input, out, [&](size_t, std::string_view line, std::ostream& to) {
    const std::vector<std::string> words = data::words(line);
    if (!words.empty()) {
      const Part one = {sentence_of(words)};
      to << said(answers(read_items(one, everything(1)))[0]);
    }
    to << '\n';
  });
}

std::vector<explain::Explanation> MultiHeadTask::explain(Input* input) {
  Part shown;
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      if (const auto words = data::words(line); !words.empty()) shown.push_back(sentence_of(words));
    });
  } else {
    for (size_t i = 0; i < test_.size() && shown.size() < 3; ++i)
      if (test_[i].words.size() >= 5) shown.push_back(test_[i]);
  }
  data::Random random(data::mix(setting_.seed, 0x5107));
  Part judged;  // fresh sentences say which head answers what
  for (int i = 0; i < 200; ++i) judged.push_back(draw(random));
  const std::array<int64_t, 3> heads = heads_of_slots(judged);
  std::vector<explain::Explanation> all;
  for (size_t i = 0; i < shown.size(); ++i) {
    const Read read = read_items(shown, std::vector<int64_t>{static_cast<int64_t>(i)});
    const torch::Tensor weights = looks(read)[0];  // [heads, S]
    explain::Explanation e;
    e.system = "multi-head";
    e.title = "One query, every head: who did what to whom?";
    e.view = explain::View::kBipartite;
    e.score = "scaled dot";
    e.normaliser = "softmax";
    e.structure = "the sentence";
    e.scale =
        fmt::format("1/√{}", setting_.options.integer("width") / setting_.options.integer("heads"));
    e.outcome = said(answers(read)[0]);
    e.query_label = "question";
    e.key_label = "word";
    e.queries.push_back({.text = "who did what to whom?"});
    for (const std::string& word : shown[i].words) e.keys.push_back({.text = word});
    e.heads = {"head", {}};
    for (int64_t h = 0; h < weights.size(0); ++h) {
      std::string name = std::to_string(h + 1);
      for (size_t s = 0; s < 3; ++s)
        if (heads[s] == h) name += fmt::format(" ({})", kSlots[s]);
      e.heads.names.push_back(name);
      e.maps.push_back({0, static_cast<int>(h), to_floats(weights[h]), {}});
    }
    e.notes.push_back(
        "A suffix says who acts (-a) and who is acted on (-o). Each head is its own picture: their "
        "mean would show three words in equal "
        "shares and hide which answers what.");
    explain::Explanation rows = e;
    rows.title = "Each question by the head that answers it";
    rows.view = explain::View::kMatrix;
    rows.queries.clear();
    rows.maps.clear();
    rows.heads = {"head", {"the question's own"}};
    explain::Map map;
    for (size_t s = 0; s < 3; ++s) {
      rows.queries.push_back({.text = kSlots[s]});
      const std::vector<float> row = to_floats(weights[heads[s]]);
      map.dense.insert(map.dense.end(), row.begin(), row.end());
      if (shown[i].places[s] >= 0) {
        if (!rows.truth) rows.truth = explain::Truth{"the word that answers", {}, {}, {}};
        rows.truth->sure.push_back(
            {static_cast<int32_t>(s), static_cast<int32_t>(shown[i].places[s]), 1.0f});
      }
    }
    rows.maps.push_back(std::move(map));
    all.push_back(std::move(e));
    all.push_back(std::move(rows));
  }
  return all;
}

const Registration registered{System{
    .info =
        {.name = "multi-head",
         .number = 26,
         .title = "Multi-head attention",
         .idea = "A weighted mean can only look at one thing at a time: mix the doer with the "
                 "one it was done to, and nothing says which was which. "
                 "Several heads look at several things at once, each with projections of its "
                 "own, and their answers are laid side by side.",
         .paper = "Vaswani et al. 2017, Attention Is All You Need",
         .equation = "<math "
                     "display=\"block\"><mrow><msub><mi>Z</mi><mi>h</mi></msub><mo>=</"
                     "mo><mi>attend</mi><mo>(</mo><mi>X</mi><msubsup><mi>W</mi><mi>h</mi>"
                     "<mi>Q</mi></msubsup><mo>,</mo><mi>X</mi><msubsup><mi>W</mi><mi>h</"
                     "mi><mi>K</mi></msubsup><mo>,</mo><mi>X</mi><msubsup><mi>W</mi><mi>h</mi>"
                     "<mi>V</mi></msubsup><mo>)</mo><mo>,</mo><mspace "
                     "width=\"1em\"/><mi>O</mi><mo>=</mo><mo>[</mo><msub><mi>Z</mi><mn>1</mn></"
                     "msub><mo>…</mo>"
                     "<msub><mi>Z</mi><mi>H</mi></msub><mo>]</mo><msup><mi>W</mi><mi>O</mi></"
                     "msup></mrow></math>",
         .equation_text = "Z_h = attend(X W_h^Q, X W_h^K, X W_h^V);  O = [Z_1 ... Z_H] W^O",
         .code = "fovea::nn::MultiHead attention(fovea::nn::MultiHeadOptions{.width = 24, .heads = "
                 "3});\n"
                 "auto answer = attention->forward(query, words, words, {.key_lengths = lengths});",
         .triple = {"H projections of one query", "H projections", "H projections", "scaled dot",
                    "softmax per head", "the sentence"},
         .formats = {"generated sentences with free word order and case suffixes",
                     "a folder of train.txt, val.txt, test.txt: a sentence a line, of its words"},
         .expect = "three heads 99 %, one head 85 to 95 %"},
    .options = {Option("width", 24, "of the model").at_least(1),
                Option("heads", 3, "divides the width").at_least(1)},
    .recipe = train::Recipe{.epochs = 22, .batch = 64, .rate = 6e-3, .schedule = "cosine"},
    .tour = {},
    .make = [](const Setting& setting) { return std::make_unique<MultiHeadTask>(setting); },
}};

}  // namespace
}  // namespace fovea::systems::multi_head
