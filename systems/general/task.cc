#include "systems/general/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/packed.h"
#include "data/split.h"
#include "fovea/attend.h"
#include "systems/general/memories.h"
#include "systems/general/model.h"
#include "systems/general/view.h"
#include "train/answers.h"
#include "train/classification_task.h"

namespace fovea::systems::general {
namespace {

class General : public GradientTask {
 public:
  explicit General(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    names_ = source.path.empty() ? Names::kCapitals : Names::kNumbers;
    memories_ = source.path.empty() ? generate(run_options_.options.integer("memories"),
                                               run_options_.options.number("noise"), source.seed)
                                    : read_memories(source.path);
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    for (const Memory& memory : memories_)
      request.keys.push_back(data::item_key(json_line(memory)));
    splits_ = data::split(static_cast<int64_t>(memories_.size()), request);
  }
  std::string read_in_words() const override {
    return fmt::format("{} memories", memories_.size());
  }

  Written write() const override {
    Written out{.data = "memories.jsonl",
                .truth = "\"asked\" of each line: the pair a query asks for"};
    for (const Memory& memory : memories_) out.files["memories.jsonl"] += json_line(memory);
    return out;
  }

  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(run_options_.options);
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }

  // Mean squared distance between the value that was found and the right one.
  Loss loss(const Batch& batch) override {
    const Packed p = packed(at_positions(splits_.train, batch.items));
    return {found(p).sub(p.wanted).square().sum() /
                static_cast<double>(std::max<int64_t>(p.wanted.numel(), 1)),
            p.wanted.size(0)};
  }

  Evaluation evaluate(Split split) override {
    Evaluation out;
    double squares = 0, hits = 0;
    for (const auto& positions : data::ordered_batches(items(split), {}, {.items = 256})) {
      const Packed p = packed(at_positions(splits_.of(split), positions));
      if (p.wanted.size(0) == 0) continue;
      squares += found(p).sub(p.wanted).square().mean(1).sum().item<double>();
      hits += (most_weighed(p).index_select(0, p.reaching) == p.asked).sum().item<double>();
      out.items += p.wanted.size(0);
    }
    const auto n = static_cast<double>(std::max<int64_t>(out.items, 1));
    out.metrics = {{"loss", squares / n}, {"rmse", std::sqrt(squares / n)}};
    out.attention = {{"hit_rate", hits / n}};
    return out;
  }

  // A line is a query of eight numbers for the first test memory, at place 0; the answer has five.
  void predict(Input input, std::ostream& out) override {
    if (memories_.empty()) read({.seed = 1});
    const int64_t item = splits_.test.at(0);
    answer_lines(input, out, [&](size_t line, std::string_view text) -> Answered {
      std::string spaced(text);
      std::replace(spaced.begin(), spaced.end(), ',', ' ');
      Memory asked = memories_[static_cast<size_t>(item)];
      asked.queries.clear();
      std::istringstream numbers(spaced);
      for (std::string word; numbers >> word;)
        asked.queries.push_back(data::parse_float(word, "query", input.name, line));
      if (asked.queries.size() != kKey)
        throw data::FileError(input.name, line,
                              fmt::format("{} numbers, expected {}", asked.queries.size(), kKey));
      asked.asked = {0};
      const torch::Tensor answer = look_up(packed({&asked})).flatten();
      std::string numbers_of;
      for (int64_t c = 0; c < kValue; ++c)
        numbers_of += fmt::format("{}{:.5f}", c ? " " : "", answer[c].item<double>());
      return {numbers_of + "\n", [answer] { return Json{{"answer", to_floats(answer)}}; }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input)
      throw UsageError(
          "--input: general draws a memory of its own; `fovea attend --weights` shows your arrays");
    // The test memory with the most pairs.
    const Memory* shown = &memories_[static_cast<size_t>(splits_.test.at(0))];
    for (const int64_t item : splits_.test)
      if (memories_[static_cast<size_t>(item)].keys.size() *
              memories_[static_cast<size_t>(item)].asked.size() >
          shown->keys.size() * shown->asked.size())
        shown = &memories_[static_cast<size_t>(item)];
    return {picture(*model_, *shown, all_weights(packed({shown})), structure(), names_)};
  }

 private:
  struct Packed {
    torch::Tensor queries, keys, values, query_offsets, key_offsets;
    Structure sees;
    torch::Tensor reaching;  // the queries that may see the pair they ask for: the others have no
                             // way to find it, and are neither learned from nor judged
    torch::Tensor asked;     // of these queries, within the memory
    torch::Tensor wanted;    // and [these queries, kValue]
  };
  Packed packed(const std::vector<int64_t>& items) const {
    std::vector<const Memory*> chosen;
    for (const int64_t item : items) chosen.push_back(&memories_[static_cast<size_t>(item)]);
    return packed(chosen);
  }
  Packed packed(const std::vector<const Memory*>& chosen) const {
    std::vector<std::vector<float>> queries, keys, values, wanted;
    std::vector<int64_t> asked, reaching, all(chosen.size());
    int64_t first = 0;
    std::iota(all.begin(), all.end(), 0);
    for (const Memory* memory : chosen) {
      queries.push_back(memory->queries);
      keys.push_back(memory->keys);
      values.push_back(memory->values);
      wanted.emplace_back();
      for (size_t i = 0; i < memory->asked.size(); ++i) {
        const int64_t pair = memory->asked[i];
        if (!sees(structure(), static_cast<int64_t>(i), pair)) continue;
        reaching.push_back(first + static_cast<int64_t>(i));
        asked.push_back(pair);
        wanted.back().insert(wanted.back().end(), memory->values.begin() + pair * kValue,
                             memory->values.begin() + (pair + 1) * kValue);
      }
      first += static_cast<int64_t>(memory->asked.size());
    }
    const auto q = data::pack_features(queries, kKey, all),
               k = data::pack_features(keys, kKey, all);
    const auto v = data::pack_features(values, kValue, all),
               w = data::pack_features(wanted, kValue, all);
    const torch::Device device = run_options_.device;
    return {q.values.to(device),
            k.values.to(device),
            v.values.to(device),
            q.offsets.to(device),
            k.offsets.to(device),
            seen(chosen, q.offsets.to(device), k.offsets.to(device)),
            torch::tensor(at::ArrayRef<int64_t>(reaching), torch::kInt64).to(device),
            torch::tensor(at::ArrayRef<int64_t>(asked), torch::kInt64).to(device),
            w.values.to(device)};
  }
  // Which pairs of its memory a query may see: all, or those that structure= leaves.
  Structure seen(const std::vector<const Memory*>& chosen, const torch::Tensor& query_offsets,
                 const torch::Tensor& key_offsets) const {
    if (structure() == "all") return Ragged{query_offsets, key_offsets};
    const data::Csr edges = edges_of(chosen, structure());
    const auto ints = [&](const std::vector<int32_t>& values) {
      return torch::tensor(at::ArrayRef<int32_t>(values), torch::kInt32).to(run_options_.device);
    };
    return Graph{ints(edges.row_offsets), ints(edges.columns)};
  }
  const std::string& structure() const { return run_options_.options.text("structure"); }
  torch::Tensor found(const Packed& p) { return look_up(p).index_select(0, p.reaching); }
  torch::Tensor look_up(const Packed& p) {
    return attend(model_->query(p.queries), model_->key(p.keys), p.values.unsqueeze(1),
                  model_->choices(p.sees))
        .squeeze(1);
  }
  // The pair of its own memory that each query gives the largest weight: [queries].
  torch::Tensor most_weighed(const Packed& p) {
    const torch::Tensor top = weights(model_->query(p.queries), model_->key(p.keys),
                                      model_->choices(p.sees), {.top_k = 1})
                                  .indices.to(torch::kInt64);
    const torch::Tensor counts = p.query_offsets.diff();
    if (structure() != "all") {  // a graph: its keys are numbered through the batch
      const torch::Tensor first = p.key_offsets.slice(0, 0, -1).to(torch::kInt64);
      return top.flatten() - first.repeat_interleave(counts.to(torch::kInt64));
    }
    // [memories, 1, most queries, 1]; a memory with fewer queries leaves its last rows unused.
    const torch::Tensor rows = top.flatten(1);
    return rows.masked_select(torch::arange(rows.size(1), counts.options()).unsqueeze(0) <
                              counts.unsqueeze(1));
  }
  // Of one memory: [queries, pairs], 0 where a pair is not seen.
  torch::Tensor all_weights(const Packed& p) {
    const int64_t queries = p.queries.size(0), pairs = p.keys.size(0);
    const SelectedWeights found = weights(model_->query(p.queries), model_->key(p.keys),
                                          model_->choices(p.sees), {.top_k = pairs});
    const torch::Tensor at = found.indices.reshape({queries, -1}).to(torch::kInt64);
    return torch::zeros({queries, pairs}, found.weights.options())
        .scatter_add(1, at.clamp_min(0),
                     found.weights.reshape({queries, -1}) * at.ge(0).to(found.weights.dtype()));
  }

  const RunOptions run_options_;
  Names names_ = Names::kNumbers;
  std::vector<Memory> memories_;
  data::Splits splits_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_general(const RunOptions& run_options) {
  return std::make_unique<General>(run_options);
}

}  // namespace fovea::systems::general
