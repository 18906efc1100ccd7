// Scaled dot-product self-attention in six steps (Vaswani et al. 2017):
//   1 project q = x W^Q, k = x W^K, v = x W^V   2 score q·k   3 divide by √d_k   4 softmax   5
//   weight the values   6 sum
//
// The task is the lecture's own sentence: "the animal did not cross the street because it was too
// tired". Whom does "it" mean? Here it always means the living thing; the model must name it, and
// can only do so by looking there. Some sentences have no living thing, so that "nobody" is the
// answer by default and no animal can be guessed by elimination.
#include "systems/scaled_dot_product/scaled_dot_product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "data/file.h"
#include "data/packed.h"
#include "data/random.h"
#include "data/text.h"
#include "data/vocabulary.h"
#include "fovea/attend.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/classification_task.h"

namespace fovea::systems::scaled_dot_product {
namespace {

torch::Tensor four(const torch::Tensor& rows) { return rows.reshape({1, 1, rows.size(0), -1}); }

}  // namespace

SixSteps six_steps(const torch::Tensor& query, const torch::Tensor& keys,
                   const torch::Tensor& values) {
  const torch::Tensor q = query.reshape({1, 1, 1, -1}), k = four(keys);
  SixSteps out;
  out.scores = weights(q, k, {.score = Dot{1.0}, .normaliser = Unnormalised{}}).weights.flatten();
  out.scaled = weights(q, k, {.score = Dot{}, .normaliser = Unnormalised{}}).weights.flatten();
  out.weights = weights(q, k, {.score = Dot{}, .normaliser = Softmax{}}).weights.flatten();
  out.weighted = out.weights.unsqueeze(1) * values;
  out.sum = attend(q, k, four(values)).flatten();
  return out;
}

namespace {

const std::vector<std::string> kAnimals = {"animal", "dog",   "cat",     "horse",
                                           "fox",    "child", "tourist", "goat"};
const std::vector<std::string> kPlaces = {"street", "road",   "river", "field",
                                          "bridge", "square", "yard",  "track"};
const std::vector<std::string> kVerbs = {"cross", "enter", "leave", "see", "like"};
const std::vector<std::string> kStates = {"tired", "afraid", "hungry", "late", "slow"};

struct Sentence {
  std::vector<std::string> words;
  int64_t asks = 0, meant = -1;  // where "it" stands, and the word it means; -1: nobody
  int64_t animal = 0;
};

Sentence draw(data::Random& random) {
  Sentence out;
  out.animal = static_cast<int64_t>(random.below(kAnimals.size() + 1));
  const bool nobody = out.animal == static_cast<int64_t>(kAnimals.size());
  const std::string animal =
                        nobody ? random.choice(kPlaces) : kAnimals[static_cast<size_t>(out.animal)],
                    place = random.choice(kPlaces);
  const std::string verb = random.choice(kVerbs), state = random.choice(kStates);
  switch (random.below(3)) {
    case 0:
      out.words = {"the", animal,    "did", "not", verb,  "the",
                   place, "because", "it",  "was", "too", state};
      break;
    case 1:
      out.words = {"because", "it",  "was", "too", state, "the",
                   animal,    "did", "not", verb,  "the", place};
      break;
    default:
      out.words = {"the", place, "was", "what", "the", animal, "did",
                   "not", verb,  "for", "it",   "was", "too",  state};
  }
  out.asks = std::find(out.words.begin(), out.words.end(), "it") - out.words.begin();
  if (!nobody)
    out.meant = std::find(out.words.begin(), out.words.end(), animal) - out.words.begin();
  return out;
}

struct Model : torch::nn::Module {
  Model(int64_t vocabulary, int64_t width, int64_t key_width) : scale_width(key_width) {
    embedding = register_module(
        "embedding", torch::nn::Embedding(
                         torch::nn::EmbeddingOptions(vocabulary, width).padding_idx(data::kPad)));
    const auto linear = [&](int64_t to) {
      return torch::nn::Linear(torch::nn::LinearOptions(width, to).bias(false));
    };
    q_proj = register_module("q_proj", linear(key_width));
    k_proj = register_module("k_proj", linear(key_width));
    v_proj = register_module("v_proj", linear(width));
    out =
        register_module("out", torch::nn::Linear(width, static_cast<int64_t>(kAnimals.size()) + 1));
  }
  // [total, width]: every word looks at every word of its own sentence.
  torch::Tensor mixed(const torch::Tensor& x, const torch::Tensor& offsets) {
    return attend(q_proj(x).unsqueeze(1), k_proj(x).unsqueeze(1), v_proj(x).unsqueeze(1),
                  {.score = Dot{}, .structure = Ragged{offsets, offsets}})
        .squeeze(1);
  }
  const int64_t scale_width;
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out{nullptr};
};

class ScaledDotProduct : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    data::Random random(source.seed);
    sentences_.clear();
    labels_.clear();
    lengths_.clear();
    if (source.path.empty())
      for (int64_t i = 0; i < setting_.options.integer("sentences"); ++i)
        sentences_.push_back(draw(random));
    else
      read_sentences(source.path);
    std::vector<std::string> keys;
    for (const Sentence& sentence : sentences_) {
      labels_.push_back(sentence.animal);
      lengths_.push_back(static_cast<int64_t>(sentence.words.size()));
      keys.push_back(fmt::format("{}", fmt::join(sentence.words, " ")));
    }
    if (source.all_test) {
      splits_ = data::all_for_test(sentences_.size());
      return;
    }
    splits_ = data::split(static_cast<int64_t>(sentences_.size()), {.test = 0.2,
                                                                    .fold = source.fold,
                                                                    .folds = source.folds,
                                                                    .seed = source.seed,
                                                                    .keys = keys});
  }
  void prepare() override {
    std::vector<std::vector<std::string>> known;
    for (const int64_t item : splits_.train)
      known.push_back(sentences_[static_cast<size_t>(item)].words);
    vocabulary_ = data::Vocabulary::of(known, {});
  }
  Assets assets() const override {
    return {.facts = Json::object(), .files = {{"vocabulary", vocabulary_.text()}}};
  }
  void restore(const Assets& assets) override {
    vocabulary_ = data::Vocabulary::parse(assets.files.at("vocabulary"), "vocabulary");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(vocabulary_.size(), setting_.options.integer("width"),
                                            setting_.options.integer("key_width"));
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    const data::Packed words = packed(items);
    return model_->out(model_->mixed(model_->embedding(words.values), words.offsets)
                           .index_select(0, askers(words.offsets, items)));
  }

  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    for (const int64_t item : items) {
      const Sentence& sentence = sentences_[static_cast<size_t>(item)];
      const torch::Tensor x = embedded(sentence.words);
      const torch::Tensor top =
          weights(
              four(model_->q_proj(x)), four(model_->k_proj(x)), {},
              {.rows = torch::tensor({sentence.asks}, torch::kInt32).to(x.device()), .top_k = 1})
              .indices;
      out.push_back(sentence.meant < 0 ? -1 : top.item<int64_t>() == sentence.meant);
    }
    return out;
  }

  Written write() const override {
    Written out{.data = "sentences.tsv",
                .truth = "truth.jsonl, where \"it\" stands and whom it means"};
    for (const Sentence& sentence : sentences_) {
      out.files["sentences.tsv"] +=
          fmt::format("{}\t{}\n", answer(sentence.animal), fmt::join(sentence.words, " "));
      out.files["truth.jsonl"] +=
          Json{{"query", sentence.asks},
               {"key", sentence.meant < 0 ? Json(nullptr) : Json(sentence.meant)}}
              .dump() +
          "\n";
    }
    return out;
  }

  // A line is a sentence with the word "it".
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      const Sentence sentence = parsed(text, input.name, line);
      const torch::Tensor x = embedded(sentence.words);
      const torch::Tensor offsets =
          torch::tensor({int64_t{0}, x.size(0)}, torch::kInt32).to(x.device());
      const torch::Tensor p = model_->out(model_->mixed(x, offsets)[sentence.asks]).softmax(0);
      to << fmt::format("{}\t{:.4f}\n", answer(p.argmax().item<int64_t>()), p.max().item<double>());
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    Sentence sentence =
        parsed("the animal did not cross the street because it was too tired", "example", 1);
    if (input) {
      std::string line;
      std::getline(input->stream, line);
      sentence = parsed(line, input->name, 1);
    }
    const torch::Tensor x = embedded(sentence.words);
    const torch::Tensor q = model_->q_proj(x), k = model_->k_proj(x), v = model_->v_proj(x);
    explain::Explanation out;
    out.title = "Whom does “it” mean?";
    out.view = explain::View::kBipartite;
    out.score = "q·k / √d_k";
    out.normaliser = "softmax";
    out.structure = "all words of the sentence";
    out.scale = fmt::format("1/√{}", model_->scale_width);
    out.query_label = "word that looks";
    out.key_label = "word looked at";
    for (const std::string& word : sentence.words) {
      out.queries.emplace_back().text = word;
      out.keys.emplace_back().text = word;
    }
    out.maps.emplace_back().dense = to_floats(weights(four(q), four(k)).weights);
    if (sentence.meant >= 0) {
      explain::Truth truth;
      truth.label = "the one meant";
      truth.sure.push_back(
          {static_cast<int32_t>(sentence.asks), static_cast<int32_t>(sentence.meant), 1});
      out.truth = truth;
    }
    for (int64_t i = 0; i < x.size(0); ++i)
      out.tables.push_back(table(sentence, i, six_steps(q[i], k, v)));
    return {out};
  }

 private:
  static const std::string& answer(int64_t animal) {
    static const std::string nobody = "nobody";
    return animal < static_cast<int64_t>(kAnimals.size()) ? kAnimals[static_cast<size_t>(animal)]
                                                          : nobody;
  }
  // whom<TAB>sentence: an animal of the sentence, or nobody.
  void read_sentences(const std::string& path) {
    const std::string text = data::read_file(path);
    data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
      const size_t tab = content.find('\t');
      if (tab == std::string_view::npos)
        throw data::FileError(
            path, line, fmt::format("expected whom<TAB>sentence, found {}", data::shown(content)));
      Sentence sentence = parsed(content.substr(tab + 1), path, line);
      const std::string whom(content.substr(0, tab));
      sentence.animal = 0;
      while (answer(sentence.animal) != whom && answer(sentence.animal) != "nobody")
        ++sentence.animal;
      const auto place = std::find(sentence.words.begin(), sentence.words.end(), whom);
      if (answer(sentence.animal) != whom || (whom != "nobody" && place == sentence.words.end()))
        throw data::FileError(
            path, line,
            fmt::format("{} is meant, expected nobody or one of {} that stands in the sentence",
                        data::shown(whom), fmt::join(kAnimals, ", ")));
      sentence.meant = whom == "nobody" ? -1 : place - sentence.words.begin();
      sentences_.push_back(std::move(sentence));
    });
  }
  explain::Table table(const Sentence& sentence, int64_t query, const SixSteps& steps) const {
    explain::Table out;
    out.title = fmt::format("Six steps for “{}”", sentence.words[static_cast<size_t>(query)]);
    out.query = static_cast<int>(query);
    out.columns = {"word",        "1 key k",
                   "2 q·k",       fmt::format("3 ÷ √{}", model_->scale_width),
                   "4 softmax",   "5 weight × v (first of its numbers)",
                   "6 sum so far"};
    double sum = 0;
    for (size_t j = 0; j < sentence.words.size(); ++j) {
      const auto at = static_cast<int64_t>(j);
      const double part = steps.weighted[at][0].item<double>();
      sum += part;
      out.rows.push_back({sentence.words[j], fmt::format("k{}", j + 1),
                          fmt::format("{:.2f}", steps.scores[at].item<double>()),
                          fmt::format("{:.2f}", steps.scaled[at].item<double>()),
                          fmt::format("{:.3f}", steps.weights[at].item<double>()),
                          fmt::format("{:.3f}", part), fmt::format("{:.3f}", sum)});
    }
    return out;
  }
  torch::Tensor embedded(const std::vector<std::string>& words) const {
    return model_->embedding(
        torch::tensor(vocabulary_.ids(words), torch::kInt64).to(setting_.device));
  }
  data::Packed packed(std::span<const int64_t> items) const {
    std::vector<std::vector<int64_t>> rows;
    std::vector<int64_t> all;
    for (const int64_t item : items) {
      all.push_back(static_cast<int64_t>(rows.size()));
      rows.push_back(vocabulary_.ids(sentences_[static_cast<size_t>(item)].words));
    }
    return data::pack_tokens(rows, all).to(setting_.device);
  }
  // The positions of "it" in the packed batch.
  torch::Tensor askers(const torch::Tensor& offsets, std::span<const int64_t> items) const {
    std::vector<int64_t> asks;
    for (const int64_t item : items) asks.push_back(sentences_[static_cast<size_t>(item)].asks);
    return offsets.slice(0, 0, -1).to(torch::kInt64) +
           torch::tensor(asks, torch::kInt64).to(offsets.device());
  }
  static Sentence parsed(std::string_view text, const std::string& name, size_t line) {
    Sentence out;
    out.words = data::words(data::lower_ascii(text));
    const auto found = std::find(out.words.begin(), out.words.end(), "it");
    if (found == out.words.end())
      throw data::FileError(
          name, line,
          fmt::format("expected a sentence with the word 'it', found {}", data::shown(text)));
    out.asks = found - out.words.begin();
    out.meant = -1;
    for (size_t i = 0; i < out.words.size(); ++i)
      if (std::find(kAnimals.begin(), kAnimals.end(), out.words[i]) != kAnimals.end())
        out.meant = static_cast<int64_t>(i);
    return out;
  }

  std::vector<Sentence> sentences_;
  data::Vocabulary vocabulary_;
  std::shared_ptr<Model> model_;
};

const Registration registered{{
    .info = {.name = "scaled-dot-product",
             .number = 25,
             .title = "Scaled dot-product attention in six steps",
             .idea = "Every word makes a query, a key and a value. A query meets every key in a "
                     "dot product; the products are divided by the root of the "
                     "key's width, made to sum to one, and used to mix the values.\n\nWhy divide: "
                     "with 64 numbers a pair of scores like 112 and 96 would go to "
                     "weights 0.9999999 and 0.0000001, and nothing could be learned from the "
                     "loser. Divided by 8 they are 14 and 12, and the weights 0.88 and 0.12.",
             .paper = "Vaswani et al. 2017",
             .equation =
                 "<math "
                 "display=\"block\"><mtext>softmax</mtext><mrow><mo>(</mo><mfrac><mrow><mi>Q</"
                 "mi><msup><mi>K</mi><mi>⊤</mi></msup></mrow><msqrt><msub><mi>d</mi><mi>k</mi></"
                 "msub></msqrt></mfrac><mo>)</mo></mrow><mi>V</mi></math>",
             .equation_text = "softmax(Q Kᵀ / √d_k) V",
             .code = "// Scaled dot and softmax are the defaults.\n"
                     "auto o = fovea::attend(x.matmul(w_q), x.matmul(w_k), x.matmul(w_v));",
             .triple = {.query = "x_i W^Q",
                        .key = "x_j W^K",
                        .value = "x_j W^V",
                        .score = "q·k/√d_k",
                        .normaliser = "softmax",
                        .structure = "all or causal"},
             .formats = {"generated: sentences in which “it” means the living thing",
                         "whom<TAB>sentence with “it”, whom one of its animals or nobody"},
             .expect = "112, 96 → 0.88, 0.12; accuracy and hit rate ≥ 0.99"},
    .options = {Option("sentences", 2000, "generated").between(50, 1000000),
                Option("width", 64, "of a word").between(1, 4096),
                Option("key_width", 64, "d_k").between(1, 4096)},
    .recipe =
        train::Recipe{
            .epochs = 12, .batch = 32, .optimiser = "adam", .rate = 0.002, .monitor = "loss"},
    .make = [](const Setting& setting) -> std::unique_ptr<Task> {
      return std::make_unique<ScaledDotProduct>(setting);
    },
}};

}  // namespace
}  // namespace fovea::systems::scaled_dot_product
