// The general form f(Q, K, V): any score, any normaliser, on a task whose answer is known.
//
// A memory holds m key-value pairs; n queries each ask, with a noisy copy of one key, for that
// key's value. Whatever the choice of score and normaliser, the right weight is on the pair asked
// for: that is the hit rate. m and n differ from item to item, value and key widths differ, and |K|
// = |V| is required while |Q| is free.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/batches.h"
#include "data/csv.h"
#include "data/file.h"
#include "data/packed.h"
#include "data/random.h"
#include "fovea/attend.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/classification_task.h"

namespace fovea::systems::general {
namespace {

constexpr int64_t kKey = 8, kValue = 5,
                  kInner = 32;  // widths of keys, values and of the projected query and key

struct Memory {
  std::vector<float> keys, values, queries;  // m × kKey, m × kValue, n × kKey
  std::vector<int64_t> asked;                // for each query, the pair it asks for
};

// A key is a random direction of length √kKey: with keys of different lengths a dot product would
// prefer the long ones.
void add_direction(std::vector<float>& keys, data::Random& random) {
  double direction[kKey], square = 0;
  for (double& c : direction) {
    c = random.normal();
    square += c * c;
  }
  for (const double c : direction) keys.push_back(static_cast<float>(c * std::sqrt(kKey / square)));
}

struct Model : torch::nn::Module {
  explicit Model(const Settings& options)
      : score(options.text("score")), normaliser(options.text("normaliser")) {
    q_proj = register_module("q_proj",
                             torch::nn::Linear(torch::nn::LinearOptions(kKey, kInner).bias(false)));
    // The bias matters to the additive score alone: without it w'tanh(…) is odd, and cannot tell q
    // = k from q = -k.
    k_proj = register_module("k_proj", torch::nn::Linear(kKey, kInner));
    if (score == "additive") weight = register_parameter("weight", torch::randn({kInner}) / 4);
    if (score == "bilinear")
      weight = register_parameter("weight", torch::randn({kInner, kInner}) / kInner);
    if (score == "cosine") weight = register_parameter("beta", torch::full({1}, 10.0));
    if (score == "kernel") weight = register_parameter("bandwidth", torch::ones({1}));
  }

  Choices choices(const torch::Tensor& query_offsets, const torch::Tensor& key_offsets) const {
    Score chosen = Dot{};
    if (score == "additive") chosen = Additive{weight};
    if (score == "bilinear") chosen = Bilinear{weight, std::nullopt};
    if (score == "cosine") chosen = Cosine{weight};
    if (score == "kernel") chosen = Kernel{KernelName::kGaussian, weight.abs() + 1e-3, {}};
    Normaliser kind = Softmax{};
    if (normaliser == "sparsemax") kind = Sparsemax{};
    if (normaliser == "entmax") kind = Entmax{};
    if (normaliser == "sigmoid") kind = Sigmoid{};
    if (normaliser == "top_k") kind = TopK{4};
    if (normaliser == "uniform") kind = Uniform{};
    return {.score = chosen, .normaliser = kind, .structure = Ragged{query_offsets, key_offsets}};
  }
  torch::Tensor query(const torch::Tensor& q) {
    return q_proj(q).unsqueeze(1);
  }  // [total, 1 head, kInner]
  torch::Tensor key(const torch::Tensor& k) { return k_proj(k).unsqueeze(1); }

  const std::string score, normaliser;
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr};
  torch::Tensor weight;
};

class General : public GradientTask {
 public:
  explicit General(const Setting& setting) : setting_(setting) {}

  void read(const Source& source) override {
    memories_.clear();
    if (source.path.empty())
      generate(source.seed);
    else
      read_memories(source.path);
    if (source.all_test) {
      splits_ = data::all_for_test(memories_.size());
      return;
    }
    splits_ =
        data::split(static_cast<int64_t>(memories_.size()),
                    {.test = 0.2, .fold = source.fold, .folds = source.folds, .seed = source.seed});
  }

  Written write() const override {
    Written out{.data = "memories.jsonl",
                .truth = "\"asked\" of each line: the pair a query asks for"};
    for (const Memory& memory : memories_)
      out.files["memories.jsonl"] += Json{{"keys", rows_of(memory.keys, kKey)},
                                          {"values", rows_of(memory.values, kValue)},
                                          {"queries", rows_of(memory.queries, kKey)},
                                          {"asked", memory.asked}}
                                         .dump() +
                                     "\n";
    return out;
  }

  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(setting_.options);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }

  // Mean squared distance between what was looked up and what was asked for.
  Loss loss(const Batch& batch) override {
    const Packed p = packed(at_positions(splits_.train, batch.items));
    return {(look_up(p) - p.wanted).square().mean(), p.wanted.size(0)};
  }

  Evaluation evaluate(Split split) override {
    Evaluation out;
    double squares = 0, hits = 0;
    for (const auto& positions : data::ordered_batches(items(split), {}, {.items = 256})) {
      const Packed p = packed(at_positions(splits_.of(split), positions));
      if (p.wanted.size(0) == 0) continue;
      squares += (look_up(p) - p.wanted).square().mean(1).sum().item<double>();
      // [memories, 1, most queries, 1]; a memory with fewer queries leaves its last rows unused.
      const torch::Tensor top =
          weights(model_->query(p.queries), model_->key(p.keys),
                  model_->choices(p.query_offsets, p.key_offsets), {.top_k = 1})
              .indices.flatten(1)
              .to(torch::kInt64);
      const torch::Tensor counts =
          (p.query_offsets.slice(0, 1) - p.query_offsets.slice(0, 0, -1)).unsqueeze(1);
      const torch::Tensor used = torch::arange(top.size(1), counts.options()).unsqueeze(0) < counts;
      hits += (top.masked_select(used) == p.asked).sum().item<double>();
      out.items += p.wanted.size(0);
    }
    const auto n = static_cast<double>(std::max<int64_t>(out.items, 1));
    out.metrics = {{"loss", squares / n}, {"rmse", std::sqrt(squares / n)}};
    out.attention = {{"hit_rate", hits / n}};
    return out;
  }

  // A line is a query of eight numbers, asked of the first test memory; the answer is five.
  void predict(Input input, std::ostream& out) override {
    if (memories_.empty()) read({.seed = 1});
    const int64_t item = splits_.test.at(0);
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      std::string spaced(text);
      std::replace(spaced.begin(), spaced.end(), ',', ' ');
      Memory asked = memories_[static_cast<size_t>(item)];
      asked.queries.clear();
      std::istringstream numbers(spaced);
      for (std::string word; numbers >> word;)
        asked.queries.push_back(
            static_cast<float>(data::parse_number(word, "query", input.name, line)));
      if (asked.queries.size() != kKey)
        throw data::FileError(input.name, line,
                              fmt::format("{} numbers, expected {}", asked.queries.size(), kKey));
      asked.asked = {0};
      const torch::Tensor answer = look_up(packed({&asked})).flatten();
      for (int64_t c = 0; c < kValue; ++c)
        to << fmt::format("{}{:.5f}", c ? " " : "", answer[c].item<double>());
      to << "\n";
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input)
      throw UsageError(
          "--input: general draws a memory of its own; `fovea attend --weights` shows your arrays");
    // The test memory with the most to see.
    const Memory* shown = &memories_[static_cast<size_t>(splits_.test.at(0))];
    for (const int64_t item : splits_.test)
      if (memories_[static_cast<size_t>(item)].keys.size() *
              memories_[static_cast<size_t>(item)].asked.size() >
          shown->keys.size() * shown->asked.size())
        shown = &memories_[static_cast<size_t>(item)];
    const Packed p = packed({shown});
    const int64_t n = p.queries.size(0), m = p.keys.size(0);
    explain::Explanation out;
    out.title = fmt::format("Looking up {} of {} pairs: {} score, {}", n, m, model_->score,
                            model_->normaliser);
    out.view = explain::View::kBipartite;
    out.score = model_->score;
    out.normaliser = model_->normaliser;
    out.structure = "ragged batch";
    out.scale = model_->score == "dot" ? fmt::format("1/√{}", kInner) : "1";
    for (int64_t i = 0; i < n; ++i)
      out.queries.emplace_back().text = fmt::format("query {}", i + 1);
    for (int64_t j = 0; j < m; ++j) out.keys.emplace_back().text = fmt::format("key {}", j + 1);
    out.maps.emplace_back().dense =
        to_floats(weights(model_->query(p.queries), model_->key(p.keys),
                          model_->choices(p.query_offsets, p.key_offsets))
                      .weights);
    explain::Truth truth;
    truth.label = "the pair asked for";
    for (int64_t i = 0; i < n; ++i)
      truth.sure.push_back(
          {static_cast<int32_t>(i), static_cast<int32_t>(shown->asked[static_cast<size_t>(i)]), 1});
    out.truth = truth;
    explain::Shapes shapes;
    shapes.query = fmt::format("{} × {}", n, kInner);
    shapes.key = fmt::format("{} × {}", m, kInner);
    shapes.value = fmt::format("{} × {}", m, kValue);
    shapes.weights = fmt::format("{} × {}", n, m);
    shapes.output = fmt::format("{} × {}", n, kValue);
    out.shapes = shapes;
    return {out};
  }

 private:
  void generate(uint64_t seed) {
    data::Random random(seed);
    const int64_t count = setting_.options.integer("memories");
    for (int64_t i = 0; i < count; ++i) {
      Memory memory;
      const auto pairs = static_cast<int64_t>(1 + random.below(16)),
                 queries = static_cast<int64_t>(random.below(5));
      for (int64_t j = 0; j < pairs; ++j) add_direction(memory.keys, random);
      for (int64_t j = 0; j < pairs * kValue; ++j)
        memory.values.push_back(static_cast<float>(random.normal()));
      for (int64_t q = 0; q < queries; ++q) {
        memory.asked.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(pairs))));
        for (int64_t c = 0; c < kKey; ++c)
          memory.queries.push_back(
              memory.keys[static_cast<size_t>(memory.asked.back() * kKey + c)] +
              static_cast<float>(setting_.options.number("noise") * random.normal()));
      }
      memories_.push_back(std::move(memory));
    }
  }
  // JSON Lines {"keys", "values", "queries": lists of rows, "asked": for each query the number of
  // its pair}.
  void read_memories(const std::string& path) {
    const std::string text = data::read_file(path);
    data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
      const Json item = Json::parse(content, nullptr, false);
      Memory memory;
      const int64_t pairs = add_rows(item, "keys", kKey, memory.keys, path, line),
                    values = add_rows(item, "values", kValue, memory.values, path, line),
                    queries = add_rows(item, "queries", kKey, memory.queries, path, line);
      const auto expect = [&](bool right, const std::string& what) {
        if (!right) throw data::FileError(path, line, what);
      };
      expect(
          pairs > 0 && values == pairs,
          fmt::format("{} values, expected {}, one for each key, and at least one", values, pairs));
      const Json asked = item.value("asked", Json());
      expect(asked.is_array() && static_cast<int64_t>(asked.size()) == queries,
             fmt::format("expected \"asked\" to list {} pairs, one for each query", queries));
      for (const Json& pair : asked) {
        expect(pair.is_number_unsigned() && pair.get<int64_t>() < pairs,
               fmt::format("asked: {}, expected 0 to {}", pair.dump(), pairs - 1));
        memory.asked.push_back(pair.get<int64_t>());
      }
      memories_.push_back(std::move(memory));
    });
  }
  static Json rows_of(const std::vector<float>& values, int64_t width) {
    Json rows = Json::array();
    for (auto at = values.begin(); at != values.end(); at += width)
      rows.push_back(std::vector<float>(at, at + width));
    return rows;
  }
  static int64_t add_rows(const Json& item, const char* name, int64_t width, std::vector<float>& to,
                          const std::string& path, size_t line) {
    const auto expected =
        fmt::format("expected \"{}\" to be a list of rows of {} numbers", name, width);
    if (!item.is_object() || !item.contains(name) || !item[name].is_array())
      throw data::FileError(path, line, expected);
    for (const Json& row : item[name]) {
      if (!row.is_array() || static_cast<int64_t>(row.size()) != width ||
          !std::all_of(row.begin(), row.end(), [](const Json& x) { return x.is_number(); }))
        throw data::FileError(path, line, expected + ", found " + data::shown(row.dump()));
      for (const Json& x : row) to.push_back(x.get<float>());
    }
    return static_cast<int64_t>(item[name].size());
  }

  struct Packed {
    torch::Tensor queries, keys, values, query_offsets, key_offsets;
    torch::Tensor asked;   // [queries], within the memory
    torch::Tensor wanted;  // [queries, kValue]
  };
  Packed packed(const std::vector<int64_t>& items) const {
    std::vector<const Memory*> chosen;
    for (const int64_t item : items) chosen.push_back(&memories_[static_cast<size_t>(item)]);
    return packed(chosen);
  }
  Packed packed(const std::vector<const Memory*>& chosen) const {
    std::vector<std::vector<float>> queries, keys, values, wanted;
    std::vector<int64_t> asked, all(chosen.size());
    std::iota(all.begin(), all.end(), 0);
    for (const Memory* memory : chosen) {
      queries.push_back(memory->queries);
      keys.push_back(memory->keys);
      values.push_back(memory->values);
      wanted.emplace_back();
      for (const int64_t pair : memory->asked) {
        asked.push_back(pair);
        wanted.back().insert(wanted.back().end(), memory->values.begin() + pair * kValue,
                             memory->values.begin() + (pair + 1) * kValue);
      }
    }
    const auto q = data::pack_features(queries, kKey, all),
               k = data::pack_features(keys, kKey, all);
    const auto v = data::pack_features(values, kValue, all),
               w = data::pack_features(wanted, kValue, all);
    const torch::Device device = setting_.device;
    return {q.values.to(device),  k.values.to(device),
            v.values.to(device),  q.offsets.to(device),
            k.offsets.to(device), torch::tensor(asked, torch::kInt64).to(device),
            w.values.to(device)};
  }
  torch::Tensor look_up(const Packed& p) {
    return attend(model_->query(p.queries), model_->key(p.keys), p.values.unsqueeze(1),
                  model_->choices(p.query_offsets, p.key_offsets))
        .squeeze(1);
  }

  const Setting setting_;
  std::vector<Memory> memories_;
  data::Splits splits_;
  std::shared_ptr<Model> model_;
};

const Registration registered{{
    .info =
        {.name = "general",
         .number = 9,
         .title = "The general form f(Q, K, V)",
         .idea = "Every attention mechanism is three steps: score each query against each key, "
                 "normalise the scores over the keys a query may "
                 "see, and average the values with those weights. Choose a score, a normaliser and "
                 "a structure, and you have named the mechanism.\n\n"
                 "Here a memory holds pairs of key and value, and each query asks for one of them "
                 "with a noisy copy of its key. Any score and any "
                 "normaliser can be put in; as many values as keys are required, the number of "
                 "queries is free, and nothing is padded.",
         .paper = "the common form",
         .equation =
             "<math "
             "display=\"block\"><msub><mi>o</mi><mi>i</mi></msub><mo>=</mo><munder><mo>∑</"
             "mo><mrow><mi>j</mi><mo>∈</mo><mi>N</mi><mo>(</mo><mi>i</mi><mo>)</mo></mrow></munder>"
             "<msub><mi>a</mi><mi>ij</mi></msub><msub><mi>v</mi><mi>j</mi></msub><mo>,</mo><mspace "
             "width=\"1em\"/><msub><mi>a</mi><mi>i</mi></msub><mo>=</mo><mtext>normalise</"
             "mtext><mo>(</mo>"
             "<mtext>score</mtext><mo>(</mo><msub><mi>q</mi><mi>i</mi></msub><mo>,</"
             "mo><msub><mi>k</mi><mi>j</mi></msub><mo>)</mo><mo>)</mo></math>",
         .equation_text = "o_i = sum_j a_ij v_j, a_i = normalise(score(q_i, k_j) over j in N(i))",
         .code =
             "auto o = fovea::attend(query, key, value,\n"
             "                       {.score = fovea::Additive{weight}, .normaliser = "
             "fovea::Sparsemax{},\n"
             "                        .structure = fovea::Ragged{query_offsets, key_offsets}});",
         .triple = {.query = "any",
                    .key = "any",
                    .value = "any",
                    .score = "any",
                    .normaliser = "any",
                    .structure = "any (ragged here)"},
         .formats =
             {"generated: memories of key-value pairs",
              "JSON Lines {keys, values, queries: lists of rows; asked: the pair of each query}"},
         .expect = "hit rate ≥ 0.97 (dot, softmax)"},
    .options = {Option("score", "dot", "how a query meets a key")
                    .among({"dot", "additive", "bilinear", "cosine", "kernel"}),
                Option("normaliser", "softmax", "how scores become weights")
                    .among({"softmax", "sparsemax", "entmax", "sigmoid", "top_k", "uniform"}),
                Option("memories", 3000, "generated").between(20, 1000000),
                Option("noise", 0.2, "on the key a query repeats").at_least(0)},
    .recipe =
        train::Recipe{
            .epochs = 30, .batch = 64, .optimiser = "adam", .rate = 0.01, .monitor = "loss"},
    .tour = {"epochs=8"},
    .make = [](const Setting& setting) -> std::unique_ptr<Task> {
      return std::make_unique<General>(setting);
    },
}};

}  // namespace
}  // namespace fovea::systems::general
