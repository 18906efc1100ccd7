// Sets of digits of one kind, with one other digit: which is it?
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/pictures/image.h"
#include "data/random.h"
#include "systems/deep_sets/digits.h"
#include "systems/set_outlier/model.h"
#include "systems/set_outlier/tasks.h"
#include "systems/set_outlier/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::set_outlier {
namespace {

// An item is a set, and its class is the position of the odd member. So the cross entropy of the
// members' scores is the softmax over the members.
class Outlier : public ClassificationTask {
 public:
  explicit Outlier(const RunOptions& run_options)
      : ClassificationTask(run_options), members_(run_options.options.integer("members")) {}

  void read(const Source& source) override {
    const data::DigitSets digits = digits_from(source.path, source.seed);
    seed_ = source.seed;
    if (digits.train.height != digits.train.width)
      throw data::FileError(source.path, 0, "expected square pictures");
    if (side_ != 0 && side_ != digits.train.height)
      throw deep_sets::other_size(source.path, digits.train.height, side_);
    side_ = digits.train.height;
    if (!source.path.empty()) {
      trained_keys_ = deep_sets::keys_of(digits.train);
      test_keys_ = deep_sets::keys_of(digits.test);
    }
    splits_ = {};
    labels_.clear();
    sets_.clear();
    kinds_.clear();
    add(splits_.train, digits.train, run_options_.options.integer("sets"),
        data::mix(source.seed, 31));
    add(splits_.validation, digits.train, 300, data::mix(source.seed, 32));
    add(splits_.test, digits.test, 1000, data::mix(source.seed, 33));
  }
  std::string read_in_words() const override {
    return fmt::format("{} sets drawn from pictures of {} x {} pixels", sets_.size(), side_, side_);
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return split == Split::kTest ? test_keys_ : trained_keys_;
  }
  Assets assets() const override { return {.facts = {{"side", side_}}, .files = {}}; }
  void restore(const Assets& assets) override {
    side_ = train::Fields(assets.facts, "facts.").integer("side", 1, data::kWidestPicture);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    return model_ = std::make_shared<OutlierModel>(
               OutlierModel::Shape{.side = side_,
                                   .filters = options.integer("filters"),
                                   .width = options.integer("width"),
                                   .pool = options.text("pool")});
  }
  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(packed(items)).view({-1, members_});
  }
  std::vector<int> hits(std::span<const int64_t> items) override {
    const torch::Tensor best = logits(items).argmax(1).cpu();
    std::vector<int> out;
    for (size_t i = 0; i < items.size(); ++i)
      out.push_back(best[static_cast<int64_t>(i)].item<int64_t>() ==
                    labels_[static_cast<size_t>(items[i])]);
    return out;
  }

  Written write() const override {
    Written out{.files = data::mnist_files(digits_from("", seed_)),
                .truth = "truth.jsonl, the odd member of each set made of the digits"};
    std::string& truth = out.files["truth.jsonl"];
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
      for (const int64_t set : splits_.of(split))
        truth += Json{{"split", data::name_of(split)},
                      {"set", set},
                      {"digits", kinds_[static_cast<size_t>(set)]},
                      {"odd", labels_[static_cast<size_t>(set)]}}
                     .dump() +
                 "\n";
    return out;
  }

  // A line is a folder of any number of pictures. The answer is the file that does not belong, and
  // its share.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const ShownSet set = folder(data::folder_named(input.name, number, line));
      if (set.members.empty())
        return {fmt::format("{}\t-\t-\n", line), [set = std::string(line)] {
                  return Json{{"set", set}, {"answer", nullptr}};
                }};
      const std::vector<float> share = shares_of(set);
      const auto odd = std::max_element(share.begin(), share.end()) - share.begin();
      return {fmt::format("{}\t{}\t{:.4f}\n", line, set.members[static_cast<size_t>(odd)],
                          share[static_cast<size_t>(odd)]),
              [share, members = set.members, name = std::string(line)] {
                Json fields = {{"set", name}};
                fields.update(class_fields(members, share));
                return fields;
              }};
    });
  }

  // The sets of the input, or five test sets: each member with its share. The true odd one is
  // marked if it is known.
  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<ShownSet> shown;
    if (input) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        if (ShownSet set = folder(data::folder_named(input->name, number, line));
            !set.members.empty())
          shown.push_back(std::move(set));
      });
    } else {
      return telling();
    }
    if (shown.empty()) return {};
    for (ShownSet& set : shown) set.share = shares_of(set);
    return {odd_ones(shown, side_)};
  }

 private:
  // Test sets whose odd member was found, and last one where it was missed, if there is any.
  std::vector<explain::Explanation> telling() {
    constexpr size_t kTried = 60, kFound = 4;
    std::vector<ShownSet> found, missed;
    for (size_t i = 0; i < std::min(kTried, splits_.test.size()); ++i) {
      ShownSet set = test_set(i);
      set.share = shares_of(set);
      const auto largest = std::max_element(set.share.begin(), set.share.end());
      const bool right = static_cast<size_t>(largest - set.share.begin()) == set.odd;
      std::vector<ShownSet>& to = right ? found : missed;
      if (to.size() < (right ? kFound : 1)) to.push_back(std::move(set));
    }
    std::move(missed.begin(), missed.end(), std::back_inserter(found));
    if (found.empty()) return {};
    return {odd_ones(found, side_)};
  }
  ShownSet folder(const std::string& path) const {
    ShownSet out{.name = path, .members = data::image_files(path)};
    // As data::read_image_bag has it: nothing at all is an empty set, other things are a mistake.
    if (out.members.empty() && !std::filesystem::is_empty(path))
      throw data::FileError(path, 0, "no PNG or JPEG in it");
    data::Digits digits{static_cast<int64_t>(out.members.size()), side_, side_, {}, {}};
    for (const std::string& file : out.members) {
      const data::Image image = data::scaled(data::read_image(file), side_);
      digits.pixels.insert(digits.pixels.end(), image.pixels.begin(), image.pixels.end());
    }
    out.values.resize(digits.pixels.size());
    for (int64_t i = 0; i < digits.count; ++i)
      data::normalised_digit(digits, i, out.values.data() + i * side_ * side_);
    return out;
  }
  ShownSet test_set(size_t i) const {
    const auto item = static_cast<size_t>(splits_.test[i]);
    ShownSet out{.name = fmt::format("set {}", i + 1),
                 .values = sets_[item],
                 .odd = static_cast<size_t>(labels_[item])};
    for (const int64_t kind : kinds_[item]) out.members.push_back(std::to_string(kind));
    return out;
  }
  std::vector<float> shares_of(const ShownSet& shown) {
    const data::Packed set =
        data::pack_features({shown.values}, side_ * side_, std::vector<int64_t>{0})
            .to(run_options_.device);
    return to_floats(OutlierModel::weights_of(model_->forward(set), set.offsets));
  }

  static data::DigitSets digits_from(const std::string& folder, uint64_t seed) {
    return deep_sets::digits_from(folder, seed, "sets of things: --set task=expansion");
  }
  void add(std::vector<int64_t>& split, const data::Digits& digits, int64_t count, uint64_t seed) {
    std::vector<std::vector<int64_t>> of_kind(10);
    for (int64_t i = 0; i < digits.count; ++i)
      of_kind[static_cast<size_t>(digits.labels[static_cast<size_t>(i)])].push_back(i);
    data::Random random(seed);
    const int64_t size = side_ * side_;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t kind = random.below(10), odd_kind = (kind + 1 + random.below(9)) % 10;
      const auto place = static_cast<int64_t>(random.below(static_cast<uint64_t>(members_)));
      split.push_back(static_cast<int64_t>(sets_.size()));
      labels_.push_back(place);
      auto& set = sets_.emplace_back(static_cast<size_t>(members_ * size));
      auto& kinds = kinds_.emplace_back();
      for (int64_t m = 0; m < members_; ++m) {
        const uint64_t own = m == place ? odd_kind : kind;
        if (of_kind[own].empty())
          throw InvalidArgument(fmt::format("digits: none of kind {}, expected some", own));
        data::normalised_digit(digits, random.choice(of_kind[own]), set.data() + m * size);
        kinds.push_back(static_cast<int64_t>(own));
      }
    }
  }
  data::Packed packed(std::span<const int64_t> items) const {
    return data::pack_features(sets_, side_ * side_, items).to(run_options_.device);
  }

  const int64_t members_;
  int64_t side_ = 28;
  uint64_t seed_ = 1;                               // of the data
  std::vector<uint64_t> trained_keys_, test_keys_;  // none of generated pictures
  std::vector<std::vector<float>> sets_;
  std::vector<std::vector<int64_t>> kinds_;
  std::shared_ptr<OutlierModel> model_;
};

}  // namespace

std::unique_ptr<Task> make_outlier(const RunOptions& run_options) {
  return std::make_unique<Outlier>(run_options);
}

}  // namespace fovea::systems::set_outlier
