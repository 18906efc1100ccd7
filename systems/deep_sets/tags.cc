// Tagging: given some tags of a set and what z says, which tags are missing? s(x | X, z) = ρ([Σ φ(x); z]).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/nearest.h"
#include "data/random.h"
#include "systems/deep_sets/tag_model.h"
#include "systems/deep_sets/tag_sets.h"
#include "systems/deep_sets/tags_view.h"
#include "systems/deep_sets/tasks.h"
#include "train/answers.h"
#include "train/fields.h"

namespace fovea::systems::deep_sets {
namespace {

// A set in two parts.
struct Parted {
  std::vector<Ids> given, hidden;
};

class Tags : public GradientTask {
 public:
  explicit Tags(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    seed_ = source.seed;
    if (source.path.empty()) {
      splits_ = data::in_order(data::kGenerated);
      sets_ = draw_tag_sets(data::kGenerated.all(), data::mix(source.seed, 31));
    } else {
      sets_ = read_tag_sets(source.path);
      data::SplitRequest request = split_request(source);
      for (const TagSet& set : sets_) request.keys.push_back(data::item_key(json_line(set)));
      splits_ = data::split(static_cast<int64_t>(sets_.size()), request);
    }
    if (model_) check_width(sets_[0], source.path, 0);
    encode();
  }
  std::string read_in_words() const override {
    return data::count_of(sets_.size(), "set", " of tags, ") +
           data::count_of(sets_[0].z.size(), "number", " z in each");
  }
  void prepare() override {
    std::map<std::string, int64_t> counts;
    for (const int64_t i : splits_.train)
      for (const std::string& tag : sets_[static_cast<size_t>(i)].tags) ++counts[tag];
    names_.clear();
    for (const auto& [tag, count] : counts) names_.push_back(tag);
    std::stable_sort(names_.begin(), names_.end(), [&](const auto& a, const auto& b) {
      return counts.at(a) > counts.at(b);  // the most frequent first
    });
    z_ = ZScale::of(z_rows(splits_.train));
    encode();
  }
  Assets assets() const override {
    return {.facts = {{"tags", names_}, {"mean", z_.mean}, {"deviation", z_.deviation}},
            .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    names_ = facts.texts("tags");
    z_ = {facts.numbers("mean"), facts.numbers("deviation")};
    if (z_.deviation.size() != z_.mean.size())
      facts.refuse("deviation", "as many numbers as mean has");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<TagModels>(static_cast<int64_t>(names_.size()),
                                                run_options_.options.integer("width"),
                                                static_cast<int64_t>(z_.mean.size()));
  }
  Written write() const override {
    std::string text;
    for (const TagSet& set : sets_) text += json_line(set) + "\n";
    return {.files = {{"tags.jsonl", text}}, .data = "tags.jsonl"};
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }

  // How many tags are given is drawn anew each time, none included: then z alone must say.
  Loss loss(const Batch& batch) override {
    data::Random random(batch.seed);
    const Ids& train = splits_.train;
    Ids which;
    Parted parted;
    for (const int64_t item : batch.items) {
      which.push_back(train[static_cast<size_t>(item)]);
      part(parted, which.back(), random,
           static_cast<int64_t>(
               random.below(std::max<size_t>(1, ids_of_item(which.back()).size()))));
    }
    torch::Tensor sum = missed(model_->alone->log_shares(parted.given, {}), parted.hidden);
    if (model_->conditioned)
      sum = sum + missed(model_->conditioned->log_shares(parted.given, z_of(which)), parted.hidden);
    return {sum, static_cast<int64_t>(which.size())};
  }

  Evaluation evaluate(Split split) override {
    Evaluation out;
    const Ids& all = splits_.of(split);
    out.items = static_cast<int64_t>(all.size());
    double loss = 0, hidden = 0, sets = 0, own = 0, alone = 0;
    for (size_t from = 0; from < all.size(); from += kTogether) {
      const Ids which(all.begin() + static_cast<ptrdiff_t>(from),
                      all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), from + kTogether)));
      const Judged judged = judge(which);
      for (size_t i = 0; i < which.size(); ++i) {
        const Ids& wanted = judged.parted.hidden[i];
        if (wanted.empty()) continue;  // no tag of it is known
        const auto row = static_cast<int64_t>(i);
        const auto count = static_cast<double>(wanted.size());
        loss += count * missed(judged.own.slice(0, row, row + 1), {wanted}).item<double>();
        hidden += count;
        sets += 1;
        own += found_of(judged.own[row], wanted);
        alone += found_of(judged.alone[row], wanted);
      }
    }
    out.put("loss", loss / hidden);
    out.put("recall", own / sets);
    if (model_->conditioned) out.put("recall_without_z", alone / sets);
    return out;
  }

  // A line is a set: {"tags": […], "z": […]}; the answer is the tags it may lack, likeliest first.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const TagSet set = asked(input.name, number, line);
      const torch::Tensor p = shares_of(set);
      const auto [values, order] = p.topk(std::min<int64_t>(kAnswers, p.size(0)));
      std::vector<std::string> found;
      Json fields = Json::array();
      for (int64_t i = 0; i < order.size(0); ++i) {
        const double share = values[i].item<double>();
        if (share == 0) break;  // it is given
        const std::string& tag = names_[static_cast<size_t>(order[i].item<int64_t>())];
        found.push_back(fmt::format("{}:{:.4f}", tag, share));
        fields.push_back({{"tag", tag}, {"share", share}});
      }
      return {fmt::format("{}\n", fmt::join(found, "\t")), [set, fields] {
                return Json{{"tags", set.tags}, {"missing", fields}};
              }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<ShownTags> shown;
    if (input)
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        const TagSet set = asked(input->name, number, line);
        shown.push_back(shown_of(ids_of(set), {}, set.z));
      });
    else
      shown = telling_sets();
    std::vector<explain::Explanation> out;
    for (const ShownTags& one : shown) out.push_back(missing_tags(one, names_));
    return out;
  }

 private:
  static constexpr int64_t kAnswers = 10;
  static constexpr size_t kTogether = 256;  // sets that are judged at a time

  void check_width(const TagSet& set, const std::string& path, size_t line) const {
    if (set.z.size() != z_.mean.size())
      throw data::FileError(
          path, line,
          data::count_of(set.z.size(), "number",
                         fmt::format(" z, expected {} as in training", z_.mean.size())));
  }
  Ids ids_of(const TagSet& set) const {
    Ids out;
    for (const std::string& tag : set.tags)
      if (const auto found = places_.find(tag); found != places_.end())
        out.push_back(found->second);
    return out;
  }
  void encode() {
    places_.clear();
    for (size_t i = 0; i < names_.size(); ++i) places_[names_[i]] = static_cast<int64_t>(i);
    ids_.clear();
    for (const TagSet& set : sets_) ids_.push_back(ids_of(set));
  }
  TagSet asked(const std::string& input, size_t number, std::string_view line) {
    if (places_.empty()) encode();
    TagSet set = parse_tag_set(line, input, number);
    check_width(set, input, number);
    for (const std::string& tag : set.tags)
      if (!places_.contains(tag))
        throw data::FileError(input, number,
                              fmt::format("tag {} is not among the {} known{}", data::shown(tag),
                                          names_.size(), data::did_you_mean(tag, names_)));
    return set;
  }

  const Ids& ids_of_item(int64_t item) const { return ids_[static_cast<size_t>(item)]; }
  // The first tags of a random order are given, at least one is hidden.
  void part(Parted& to, int64_t item, data::Random& random, int64_t given) const {
    Ids all = ids_of_item(item);
    random.shuffle(all);
    const auto first =
        all.begin() + std::min(given, std::max<int64_t>(0, static_cast<int64_t>(all.size()) - 1));
    to.given.emplace_back(all.begin(), first);
    to.hidden.emplace_back(first, all.end());
  }

  Parted parted_as_asked(const Ids& which) const {
    Parted out;
    for (const int64_t item : which) {
      data::Random random(data::mix(seed_, 5000 + static_cast<uint64_t>(item)));
      part(out, item, random, run_options_.options.integer("given"));
    }
    return out;
  }

  torch::Tensor z_of(const Ids& which) const {
    return z_.scaled(z_rows(which)).to(run_options_.device);
  }
  std::vector<const std::vector<float>*> z_rows(const Ids& which) const {
    std::vector<const std::vector<float>*> rows;
    for (const int64_t i : which) rows.push_back(&sets_[static_cast<size_t>(i)].z);
    return rows;
  }

  // What is said of some items, by the best model and by the one that sees the set alone.
  struct Judged {
    Parted parted;
    torch::Tensor own, alone;  // log shares [sets, tags]
  };
  Judged judge(const Ids& which) const {
    Judged out{parted_as_asked(which), {}, {}};
    out.own = model_->best().log_shares(out.parted.given, z_of(which));
    out.alone = model_->alone->log_shares(out.parted.given, {});
    return out;
  }

  torch::Tensor shares_of(const TagSet& set) const {
    return model_->best()
        .log_shares({ids_of(set)}, z_.scaled({&set.z}).to(run_options_.device))
        .exp()[0]
        .cpu();
  }
  ShownTags shown_of(const Ids& given, const Ids& hidden, const std::vector<float>& z) const {
    ShownTags out{.given = given, .hidden = hidden, .z = z};
    out.alone = to_floats(model_->alone->log_shares({given}, {}).exp()[0]);
    if (model_->conditioned)
      out.with_z = to_floats(
          model_->conditioned->log_shares({given}, z_.scaled({&z}).to(run_options_.device))
              .exp()[0]);
    return out;
  }
  // Those of the test split where z tells most: what it finds beyond the set alone.
  std::vector<ShownTags> telling_sets() const {
    constexpr size_t kShown = 4, kLooked = 200;
    const Ids& test = splits_.test;
    const Ids which(test.begin(),
                    test.begin() + static_cast<ptrdiff_t>(std::min(test.size(), kLooked)));
    const auto [parted, own, alone] = judge(which);
    std::vector<std::pair<double, size_t>> gains;
    for (size_t i = 0; i < which.size(); ++i) {
      if (parted.hidden[i].empty()) continue;
      const auto row = static_cast<int64_t>(i);
      const double found = found_of(own[row], parted.hidden[i]);
      gains.emplace_back(-(found - 0.5 * found_of(alone[row], parted.hidden[i])), i);
    }
    std::stable_sort(gains.begin(), gains.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<ShownTags> out;
    for (size_t i = 0; i < std::min(gains.size(), kShown); ++i) {
      const size_t at = gains[i].second;
      out.push_back(
          shown_of(parted.given[at], parted.hidden[at], sets_[static_cast<size_t>(which[at])].z));
    }
    return out;
  }

  const RunOptions run_options_;
  std::vector<TagSet> sets_;
  std::vector<Ids> ids_;
  std::vector<std::string> names_;
  std::map<std::string, int64_t> places_;
  ZScale z_;
  data::Splits splits_;
  uint64_t seed_ = 1;
  std::shared_ptr<TagModels> model_;
};

}  // namespace

std::unique_ptr<Task> make_tags(const RunOptions& run_options) {
  return std::make_unique<Tags>(run_options);
}

}  // namespace fovea::systems::deep_sets
