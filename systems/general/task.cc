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
    memories_ = source.path.empty() ? generate(run_options_.options.integer("memories"),
                                               run_options_.options.number("noise"), source.seed)
                                    : read_memories(source.path);
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    for (const Memory& memory : memories_)
      request.keys.push_back(data::item_key(json_line(memory)));
    splits_ = data::split(static_cast<int64_t>(memories_.size()), request);
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

  // A line is a query of eight numbers for the first test memory; the answer has five.
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
    const Packed p = packed({shown});
    return {picture(*model_, *shown,
                    weights(model_->query(p.queries), model_->key(p.keys),
                            model_->choices(p.query_offsets, p.key_offsets))
                        .weights)};
  }

 private:
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
    const torch::Device device = run_options_.device;
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

  const RunOptions run_options_;
  std::vector<Memory> memories_;
  data::Splits splits_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_general(const RunOptions& run_options) {
  return std::make_unique<General>(run_options);
}

}  // namespace fovea::systems::general
