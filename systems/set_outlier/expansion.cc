// What is missing from a set: every thing ranked by how well it would fit.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "data/files/file.h"
#include "data/formats/item_sets.h"
#include "data/packed.h"
#include "data/random.h"
#include "systems/set_outlier/model.h"
#include "systems/set_outlier/recall.h"
#include "systems/set_outlier/tasks.h"
#include "systems/set_outlier/things.h"
#include "systems/set_outlier/view.h"
#include "train/answers.h"
#include "train/descent/finite.h"
#include "train/fields.h"

namespace fovea::systems::set_outlier {
namespace {

class Expansion : public GradientTask {
 public:
  explicit Expansion(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    data::ItemSets found =
        source.path.empty()
            ? data::generate_topics(run_options_.options.integer("sets"),
                                    run_options_.options.integer("topics"), source.seed)
            : data::read_item_sets(source.path);
    unknown_ = given_ = 0;
    given_sets_ = found.sets.size();
    const std::vector<uint64_t> keys = keys_of(found);
    if (!known_.empty() && found.names != known_) found = renumbered(found);
    names_ = std::move(found.names);
    sets_.clear();
    data::SplitRequest request = split_request(source);
    request.validation = 0.05;
    for (size_t i = 0; i < found.sets.size(); ++i) {
      if (found.sets[i].size() < 2) continue;  // one to hide and one to see
      sets_.push_back(std::move(found.sets[i]));
      request.keys.push_back(keys[i]);
    }
    splits_ = data::split(static_cast<int64_t>(sets_.size()), request);
    seed_ = source.seed;
  }
  std::string read_in_words() const override {
    return fmt::format("{} sets of {} different things", given_sets_, names_.size());
  }
  Written write() const override {
    Written out{.data = "sets.txt"};
    std::string& text = out.files["sets.txt"];
    for (const std::vector<int64_t>& set : sets_) {
      for (size_t i = 0; i < set.size(); ++i)
        text += (i ? "|" : "") + names_[static_cast<size_t>(set[i])];
      text += "\n";
    }
    return out;
  }
  void prepare() override {
    known_ = names_;
    counts_.assign(known_.size(), 0);
    for (const int64_t set : splits_.train)
      for (const int64_t thing : sets_[static_cast<size_t>(set)])
        ++counts_[static_cast<size_t>(thing)];
  }
  Assets assets() const override {
    std::string names;
    for (size_t i = 0; i < known_.size(); ++i)
      names += fmt::format("{}\t{}\n", counts_[i], known_[i]);
    return {.facts = Json::object(), .files = {{"things.tsv", names}}};
  }
  void restore(const Assets& assets) override {
    data::each_line(
        std::string_view(train::file_of(assets, "things.tsv")), "things.tsv",
        [&](size_t line, std::string_view text) {
          const size_t tab = text.find('\t');
          if (tab == std::string_view::npos)
            throw data::FileError("things.tsv", line, "expected count<TAB>name");
          counts_.push_back(data::parse_integer(text.substr(0, tab), "count", "things.tsv", line));
          known_.emplace_back(text.substr(tab + 1));
        });
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<ExpansionModel>(static_cast<int64_t>(known_.size()),
                                                     run_options_.options.integer("embedding"));
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }

  Loss loss(const Batch& batch) override {
    std::vector<int64_t> chosen;
    for (const int64_t position : batch.items)
      chosen.push_back(splits_.train[static_cast<size_t>(position)]);
    const Hidden hidden = hide(chosen, batch.seed);
    const torch::Tensor scores = model_->gains(hidden.seen.values, hidden.seen.offsets);
    if (run_options_.options.text("loss") == "softmax")
      return {torch::nn::functional::cross_entropy(scores.masked_fill(hidden.excluded, -1e30),
                                                   hidden.target),
              static_cast<int64_t>(chosen.size())};
    return {margin_loss(scores, hidden.target, hidden.excluded,
                        run_options_.options.integer("hard"), margin_of(hidden.target)),
            static_cast<int64_t>(chosen.size())};
  }

  Evaluation evaluate(Split split) override {
    const std::vector<int64_t>& all = splits_.of(split);
    Recall own, popular;
    const torch::Tensor counts = torch::tensor(at::ArrayRef<int64_t>(counts_)).to(torch::kFloat32);
    for (size_t from = 0; from < all.size(); from += kAsked) {
      Asked asked = ask(all, from, std::move(own));
      own = std::move(asked.own);
      count_ranks(popular, counts.unsqueeze(0).expand_as(asked.hidden.excluded), asked.hidden);
    }
    Evaluation out;
    out.items = static_cast<int64_t>(all.size());
    if (unknown_ > 0)
      out.notes.push_back(fmt::format(
          "{} of {} things are unknown to this run and were left out; {} of {} sets kept the two "
          "it takes to ask",
          unknown_, given_, sets_.size(), given_sets_));
    if (all.empty()) {
      out.notes.push_back("no items to evaluate, so no figures");
      return out;
    }
    out.metrics = {{"recall_10", own.share()},
                   {"recall_100", own.share_wide()},
                   {"error", 1 - own.share()},
                   {"median_rank", own.median()},
                   {"recall_10_by_thing", own.by_thing_share()},
                   {"popularity_recall_10", popular.share()},
                   {"popularity_recall_10_by_thing", popular.by_thing_share()},
                   {"popularity_median_rank", popular.median()}};
    return out;
  }

  // A line is a set, things between '|': the ten best candidates that are not in it.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text) -> Answered {
      if (text.empty())
        throw data::FileError(input.name, line, "a blank line, expected a set, things between '|'");
      const Ranking ranking = ranked(text, input.name, line);
      // The rest of the set has an answer, so the line is not refused; the unknown things are
      // reported.
      if (const std::string left = left_out(text); !left.empty())
        std::cerr << "fovea: " << data::FileError(input.name, line, left).what() << std::endl;
      std::string rows;
      for (const auto& [name, gain] : ranking) rows += fmt::format("{}\t{:.3f}\n", name, gain);
      return {rows + "\n", [ranking] {
                Json gains = Json::object();
                for (const auto& [name, gain] : ranking) gains[name] = gain;
                return Json{{"answer", ranking.empty() ? Json() : Json(ranking.begin()->first)},
                            {"gains", gains}};
              }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    if (input) {
      data::each_line(input->stream, input->name, [&](size_t line, std::string_view text) {
        if (text.empty()) return;
        out.push_back(what_would_fit(shown_set(text), ranked(text, input->name, line)));
        if (std::string left = left_out(text); !left.empty())
          out.back().notes.push_back(std::move(left));
      });
      return out;
    }
    for (size_t from = 0; from < splits_.test.size() && out.size() < 3; from += kAsked) {
      const Asked asked = ask(splits_.test, from);
      for (size_t i = 0; i < asked.sets.size() && out.size() < 3; ++i) {
        const auto& things = sets_[static_cast<size_t>(asked.sets[i])];
        if (things.size() < 5) continue;
        const int64_t hidden = asked.hidden.target[static_cast<int64_t>(i)].item<int64_t>();
        std::string line;
        for (const int64_t thing : things)
          if (thing != hidden)
            line += (line.empty() ? "" : "|") + known_[static_cast<size_t>(thing)];
        const std::string& name = known_[static_cast<size_t>(hidden)];
        out.push_back(what_would_fit(fmt::format("{} — hidden: {}, ranked {}", shown_set(line),
                                                 name, ordinal(asked.own.ranks[i])),
                                     ranked(line, "test", 1), name));
      }
    }
    return out;
  }

 private:
  // Δ(x, x') of each target x against every thing x': [targets, things], or one number for all.
  torch::Tensor margin_of(const torch::Tensor& target) {
    if (run_options_.options.text("delta") == "one")
      return torch::ones({1}, target.options().dtype(torch::kFloat32));
    if (!company_.defined()) {
      if (known_.size() > kMostInCompany)
        throw InvalidArgument(fmt::format("delta=company: {} things, expected at most {}",
                                          known_.size(), kMostInCompany));
      std::vector<std::vector<int64_t>> learnt_from;
      for (const int64_t set : splits_.train)
        learnt_from.push_back(sets_[static_cast<size_t>(set)]);
      company_ =
          company_margin(learnt_from, static_cast<int64_t>(known_.size())).to(run_options_.device);
    }
    return company_.index_select(0, target);
  }
  static constexpr size_t kMostInCompany = 20000;  // things²: 1.6 GB

  struct Hidden {
    data::Packed seen;
    torch::Tensor target, excluded;  // int64 [sets]; bool [sets, things]
  };
  // One thing of each set is hidden; the visible ones are not candidates.
  Hidden hide(const std::vector<int64_t>& chosen, uint64_t seed) const {
    data::Random random(seed);
    std::vector<std::vector<int64_t>> seen;
    std::vector<int64_t> target, all(chosen.size());
    for (const int64_t set : chosen) {
      seen.push_back(sets_[static_cast<size_t>(set)]);
      const auto at = static_cast<int64_t>(random.below(seen.back().size()));
      target.push_back(seen.back()[static_cast<size_t>(at)]);
      seen.back().erase(seen.back().begin() + at);
    }
    std::iota(all.begin(), all.end(), 0);
    Hidden out{
        data::pack_tokens(seen, all), torch::tensor(at::ArrayRef<int64_t>(target)),
        torch::zeros({static_cast<int64_t>(chosen.size()), static_cast<int64_t>(known_.size())},
                     torch::kBool)};
    out.excluded.index_put_({data::owners(out.seen.offsets), out.seen.values}, true);
    return {out.seen.to(run_options_.device), out.target.to(run_options_.device),
            out.excluded.to(run_options_.device)};
  }

  // The questions for a split's sets from `from` on, kAsked at a time: the page shows the questions
  // of the evaluation. Ranks are added to `own`.
  static constexpr size_t kAsked = 256;
  struct Asked {
    std::vector<int64_t> sets;
    Hidden hidden;
    Recall own;
  };
  Asked ask(const std::vector<int64_t>& split, size_t from, Recall own = {}) {
    const auto at = split.begin() + static_cast<int64_t>(from);
    Asked out{.sets = {at, at + static_cast<int64_t>(std::min(kAsked, split.size() - from))},
              .hidden = {},
              .own = std::move(own)};
    out.hidden = hide(out.sets, data::mix(seed_, 50 + from));
    const data::Packed& seen = out.hidden.seen;
    count_ranks(out.own, model_->gains(seen.values, seen.offsets).cpu(), out.hidden);
    return out;
  }

  // Ties go to the lower index: a rival of equal score counts only where it comes first.
  static void count_ranks(Recall& recall, const torch::Tensor& scores, const Hidden& hidden) {
    train::finite(scores, "gains");  // a NaN would be outranked by nothing
    const torch::Tensor target = hidden.target.cpu(), rivals = ~hidden.excluded.cpu(),
                        own = scores.gather(1, target.unsqueeze(1));
    const torch::Tensor before = torch::arange(scores.size(1)).unsqueeze(0).lt(target.unsqueeze(1));
    const torch::Tensor rank = (rivals & (scores.gt(own) | (scores.eq(own) & before))).sum(1) + 1;
    for (int64_t i = 0; i < rank.size(0); ++i)
      recall.add(rank[i].item<int64_t>(), target[i].item<int64_t>());
  }

  // A set is known by the names in it, whatever their numbers.
  static std::vector<uint64_t> keys_of(const data::ItemSets& found) {
    std::vector<uint64_t> keys;
    for (const auto& set : found.sets) {
      std::vector<std::string> names;
      for (const int64_t thing : set) names.push_back(found.names[static_cast<size_t>(thing)]);
      std::sort(names.begin(), names.end());
      keys.push_back(data::item_key(fmt::format("{}", fmt::join(names, "|"))));
    }
    return keys;
  }

  data::ItemSets renumbered(const data::ItemSets& found) {
    data::KnownSets known = data::item_sets_of(named(found), known_);
    for (const auto& set : found.sets) given_ += static_cast<int64_t>(set.size());
    unknown_ = known.unknown;
    return {known_, std::move(known.sets)};
  }

  // Which things of a line this run does not know; empty where it knows them all.
  std::string left_out(std::string_view line) const {
    std::string names;
    for (const std::string& thing : data::things_of_line(line))
      if (std::find(known_.begin(), known_.end(), thing) == known_.end())
        names += (names.empty() ? "" : ", ") + data::shown(thing);
    return names.empty() ? "" : "unknown to this run and left out: " + names;
  }

  Ranking ranked(std::string_view line, const std::string& name, size_t number) {
    const data::KnownSets known = data::item_sets_of({data::things_of_line(line)}, known_);
    if (known.sets[0].empty())
      throw data::FileError(name, number, fmt::format("nothing known in {}", data::shown(line)));
    const data::Packed set =
        data::pack_tokens(known.sets, std::vector<int64_t>{0}).to(run_options_.device);
    torch::Tensor scores = model_->gains(set.values, set.offsets)[0].cpu();
    for (const int64_t thing : known.sets[0])
      scores[thing] = -std::numeric_limits<float>::infinity();
    const auto [best, index] = scores.topk(
        std::min<int64_t>(kRanked, scores.size(0) - static_cast<int64_t>(known.sets[0].size())));
    Ranking out;
    for (int64_t i = 0; i < best.size(0); ++i)
      out.emplace_back(known_[static_cast<size_t>(index[i].item<int64_t>())],
                       best[i].item<double>());
    return out;
  }

  const RunOptions run_options_;
  std::vector<std::string> names_, known_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<int64_t>> sets_;
  data::Splits splits_;
  uint64_t seed_ = 1;
  // Of a file read for a run that learned from another: its things, those unknown, its sets.
  int64_t given_ = 0, unknown_ = 0;
  size_t given_sets_ = 0;
  std::shared_ptr<ExpansionModel> model_;
  torch::Tensor company_;  // Δ of delta=company, once it was needed
};

}  // namespace

std::unique_ptr<Task> make_expansion(const RunOptions& run_options) {
  return std::make_unique<Expansion>(run_options);
}

}  // namespace fovea::systems::set_outlier
