#include "systems/inverse_cooking/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/pictures/image.h"
#include "data/pictures/picture_questions.h"
#include "systems/image_to_set/naming.h"
#include "systems/image_to_set/targets.h"
#include "systems/inverse_cooking/codec.h"
#include "systems/inverse_cooking/cook.h"
#include "systems/inverse_cooking/dishes.h"
#include "systems/inverse_cooking/judge.h"
#include "systems/inverse_cooking/network.h"
#include "systems/inverse_cooking/view.h"
#include "systems/picture_lines.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::inverse_cooking {
namespace {

using image_to_set::gathered;

constexpr const char* kRecipeFile = "vocabulary";
constexpr const char* kTitleFile = "titles.vocabulary";
constexpr size_t kBatch = 128;  // of judging

class InverseCooking : public GradientTask {
 public:
  explicit InverseCooking(const RunOptions& run_options)
      : run_options_(run_options), side_(run_options.options.integer("side")) {}

  void read(const Source& source) override {
    dishes_ = read_dishes(source, run_options_.options);
    if (!model_) return;
    if (dishes_.has_pictures() != pictures_)
      throw data::FileError(source.path, 0,
                            pictures_ ? "recipes without pictures, expected pictures as in training"
                                      : "recipes with pictures, expected titles as in training");
    targets_.encode(lists());
    encode_words();
  }
  std::string read_in_words() const override {
    return fmt::format("{} recipes with {}{}{}{}", dishes_.recipes.items.size(),
                       dishes_.has_pictures() ? "pictures" : "titles",
                       dishes_.has_steps() ? " and steps" : "", dishes_.note.empty() ? "" : "; ",
                       dishes_.note);
  }
  void prepare() override {
    const std::vector<data::Recipe> training =
        gathered(dishes_.recipes.items, dishes_.recipes.splits.train);
    pictures_ = dishes_.has_pictures();
    writes_ = dishes_.has_steps();
    targets_.choose(lists(), dishes_.recipes.splits, run_options_.options.integer("ingredients"));
    std::vector<std::vector<std::string>> titles;
    for (const data::Recipe& one : training) titles.push_back(title_words(one));
    codec_ = Codec(training, run_options_.options.integer("least_count"));
    titles_ = data::Vocabulary::of(titles, {});
    encode_words();
  }
  Assets assets() const override {
    Json facts = targets_.facts("ingredients");
    facts["pictures"] = pictures_;
    facts["writes"] = writes_;
    return {.facts = std::move(facts),
            .files = {{kRecipeFile, codec_.text()}, {kTitleFile, titles_.text()}}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    targets_.restore(facts, "ingredients");
    pictures_ = facts.flag("pictures");
    writes_ = facts.flag("writes");
    codec_ = Codec(train::file_of(assets, kRecipeFile), kRecipeFile);
    titles_ = data::Vocabulary::parse(train::file_of(assets, kTitleFile), kTitleFile);
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    const int64_t width = o.integer("width"), heads = o.integer("heads");
    return model_ = std::make_shared<Network>(
               NetworkShape{.sight = {.grid = o.integer("grid"),
                                      .filters = o.integer("filters"),
                                      .width = width},
                            .ingredients = {.predictor = o.text("predictor"),
                                            .pool = o.text("pool"),
                                            .labels = targets_.labels().size(),
                                            .largest = targets_.largest(),
                                            .may_be_empty = true,
                                            .width = width,
                                            .heads = heads,
                                            .layers = o.integer("ingredient_layers"),
                                            .dropout = o.number("dropout"),
                                            .end_weight = o.number("end_weight")},
                            .recipe = {.words = codec_.words(),
                                       .ingredients = targets_.labels().size(),
                                       .fusion = kFusions.of(o.text("fusion")),
                                       .width = width,
                                       .heads = heads,
                                       .layers = o.integer("layers"),
                                       .longest = o.integer("longest"),
                                       .dropout = o.number("dropout")},
                            .title_words = pictures_ ? 0 : titles_.size(),
                            .writes = writes_});
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return dishes_.recipes.splits.keys_of(split);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(dishes_.recipes.splits.of(split).size());
  }

  // The second stage learns from the true ingredients.
  Loss loss(const Batch& batch) override {
    const Ids which = at_positions(dishes_.recipes.splits.train, batch.items);
    const Memory seen = memory(which);
    const std::vector<LabelSet> sets = targets_.of(which);
    torch::Tensor sum = model_->predictor().loss(seen, sets);
    if (model_->writes()) {
      int64_t words = 0;
      const torch::Tensor negative = model_->writer().negative_log(
          {seen, model_->writer().list_of(sets, run_options_.device)}, gathered(recipes_, which),
          words, run_options_.options.number("smoothing"));
      sum = run_options_.options.number("ingredient_weight") * sum + negative / words;
    }
    return {sum, static_cast<int64_t>(which.size())};
  }

  Metrics validate() override {
    if (items(Split::kValidation) == 0) return {};
    const Ids& which = dishes_.recipes.splits.validation;
    image_to_set::tune(model_->predictor(), seen_items(which), targets_.of(which));
    return evaluate(Split::kValidation).metrics;
  }

  Evaluation evaluate(Split split) override {
    Evaluation out;
    out.items = items(split);
    if (out.items == 0) {
      out.notes.push_back("no recipes to evaluate, so no figures");
      return out;
    }
    const Ids& which = dishes_.recipes.splits.of(split);
    const std::vector<LabelSet> truth = targets_.of(which),
                                predicted =
                                    image_to_set::named(model_->predictor(), seen_items(which));
    targets_.add_scores(out, predicted, which, "ingredients of these recipes");
    if (!pictures_ && split == Split::kTest) retrieve(out, which, truth);
    if (model_->writes()) {
      out.metrics["perplexity"] = perplexity(which, truth);
      out.metrics["perplexity_predicted"] = perplexity(which, predicted);
      if (split == Split::kTest) {
        judge_words(out, "", which, truth);
        judge_words(out, "_predicted", which, predicted);
      }
    }
    return out;
  }

  size_t lines_together() const override { return 1; }
  // A line is a picture or a folder of pictures; where titles were learned from, a title, or
  // class<TAB>title.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      if (!pictures_) return answer(cook().cooked(titled(input.name, number, line)));
      return answer_pictures(input, number, line, [&](const std::string& path) {
        return answer(cook().cooked(pictured(path, side_)));
      });
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    const auto add = [&](const Dish& dish) {
      for (auto& one : pictures(cook().cooked(dish))) out.push_back(std::move(one));
    };
    if (input) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        if (!pictures_) return add(titled(input->name, number, line));
        each_picture(*input, number, line,
                     [&](const std::string& path) { add(pictured(path, side_)); });
      });
      return out;
    }
    constexpr size_t kShown = 3;
    const Ids& test = dishes_.recipes.splits.test;
    for (size_t i = 0; i < std::min(test.size(), kShown); ++i) {
      const auto at = static_cast<size_t>(test[i]);
      const data::Recipe& recipe = dishes_.recipes.items[at];
      Dish dish{.name = pictures_ ? recipe.picture : recipe.title,
                .words = title_words(recipe),
                .pixels = pictures_ ? dishes_.pixels[at] : std::vector<uint8_t>{},
                .image = drawn(at)};
      dish.expected = &recipe.ingredients;
      add(dish);
    }
    return out;
  }

  Written write() const override { return write_dishes(dishes_, side_); }

 private:
  image_to_set::Targets::Names lists() const {
    image_to_set::Targets::Names out;
    for (const data::Recipe& one : dishes_.recipes.items) out.push_back(one.ingredients);
    return out;
  }
  void encode_words() {
    recipes_.clear();
    title_ids_.clear();
    for (const data::Recipe& one : dishes_.recipes.items) {
      recipes_.push_back(codec_.ids(one));
      title_ids_.push_back(titles_.ids(title_words(one)));
    }
  }

  Memory memory(const Ids& which) {
    if (!pictures_) return model_->titles(gathered(title_ids_, which));
    std::vector<const std::vector<uint8_t>*> pixels;
    for (const int64_t i : which) pixels.push_back(&dishes_.pixels[static_cast<size_t>(i)]);
    return model_->pictures(image_to_set::pixels_of(pixels, side_).to(run_options_.device));
  }
  Cook cook() const {
    return {*model_, codec_, titles_, targets_.labels(), run_options_, pictures_ ? side_ : 0};
  }

  image_to_set::Seen seen_items(const Ids& which) {
    return {which, [this](const Ids& items) { return memory(items); }, kBatch};
  }

  Kitchen kitchen(const Memory& seen, const std::vector<LabelSet>& sets) {
    return {seen, model_->writer().list_of(sets, run_options_.device)};
  }

  double perplexity(const Ids& which, const std::vector<LabelSet>& sets) {
    double negative = 0, words = 0;
    image_to_set::in_batches(which, kBatch, [&](size_t from, size_t to, const Ids& items) {
      const std::vector<LabelSet> part(sets.begin() + static_cast<ptrdiff_t>(from),
                                       sets.begin() + static_cast<ptrdiff_t>(to));
      int64_t count = 0;
      negative +=
          model_->writer()
              .negative_log(kitchen(memory(items), part), gathered(recipes_, items), count, 0)
              .item<double>();
      words += static_cast<double>(count);
    });
    return std::exp(negative / words);
  }

  // Where words look is measured on the first batch, with the true ingredients.
  void judge_words(Evaluation& out, const std::string& ending, const Ids& which,
                   const std::vector<LabelSet>& sets) {
    WordJudge judge(targets_.labels().names());
    image_to_set::in_batches(which, kBatch, [&](size_t from, size_t to, const Ids& items) {
      const std::vector<LabelSet> part(sets.begin() + static_cast<ptrdiff_t>(from),
                                       sets.begin() + static_cast<ptrdiff_t>(to));
      const std::vector<Ids> written = model_->writer().write(kitchen(memory(items), part));
      for (size_t i = 0; i < items.size(); ++i) {
        const std::vector<std::string> words = words_of(written[i]);
        judge.add(words, part[i]);
        if (!ending.empty() || from > 0 || words.empty() || part[i].empty()) continue;
        const Kitchen one = kitchen(memory(Ids{items[i]}), {part[i]});
        judge.add_weights(words, part[i],
                          model_->writer().weights_of(one, written[i]).back().mean(0).cpu(),
                          one.picture.keys.size(1));
      }
    });
    judge.put(out, ending);
  }

  void retrieve(Evaluation& out, const Ids& which, const std::vector<LabelSet>& truth) {
    const auto& train = dishes_.recipes.splits.train;
    if (train.empty()) {
      out.notes.push_back("retrieval_f1: undefined, no training recipes were read");
      return;
    }
    std::vector<LabelSet> sets;
    for (const auto& list : of_nearest_title(gathered(dishes_.recipes.items, which),
                                             gathered(dishes_.recipes.items, train)))
      sets.push_back(targets_.labels().of(list).set);
    out.put("retrieval_f1", metrics::set_scores(sets, truth, targets_.labels().size()).f1);
  }

  std::vector<std::string> words_of(const Ids& ids) const {
    std::vector<std::string> out;
    for (const int64_t id : ids) out.push_back(codec_.word(id));
    return out;
  }

  // A file in its own shape, whatever the network sees of it.
  data::Image drawn(size_t item) const {
    if (!pictures_) return {};
    const data::Recipes& all = dishes_.recipes;
    if (all.folder.empty()) return {side_, side_, 3, dishes_.pixels[item]};
    return data::shrunk(data::PictureStore(all.folder, side_).whole(all.items[item].picture),
                        kLongest);
  }

  // Name, title, ingredients, steps.
  static Answered answer(const ShownRecipe& recipe) {
    return {fmt::format("{}\t{}\t{}\t{}\n", recipe.name, recipe.title,
                        fmt::join(recipe.ingredients, "|"), fmt::join(recipe.steps, "|")),
            [recipe] {
              return Json{{"of", recipe.name},
                          {"title", recipe.title},
                          {"ingredients", recipe.ingredients},
                          {"probabilities", recipe.probabilities},
                          {"steps", recipe.steps}};
            }};
  }

  const RunOptions run_options_;
  const int64_t side_;
  Dishes dishes_;
  image_to_set::Targets targets_;
  Codec codec_;
  data::Vocabulary titles_;
  bool pictures_ = true, writes_ = true;
  std::vector<Ids> recipes_, title_ids_;
  std::shared_ptr<Network> model_;
};

}  // namespace

std::unique_ptr<Task> make_inverse_cooking(const RunOptions& run_options) {
  return std::make_unique<InverseCooking>(run_options);
}

}  // namespace fovea::systems::inverse_cooking
