#include "systems/show_attend_tell/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/generated/canvas_files.h"
#include "systems/picture_lines.h"
#include "systems/show_attend_tell/gallery.h"
#include "systems/show_attend_tell/judge.h"
#include "systems/show_attend_tell/lines.h"
#include "systems/show_attend_tell/losses.h"
#include "systems/show_attend_tell/telling.h"
#include "systems/show_attend_tell/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::show_attend_tell {
namespace {

using Ids = std::vector<int64_t>;

constexpr const char* kVocabularyFile = "vocabulary";
constexpr int64_t kDigits = 6000, kTestDigits = 1500;  // generated

Looks looks_named(const std::string& name) {
  if (name == "soft") return Looks::kSoft;
  if (name == "hard") return Looks::kHard;
  return name == "none" ? Looks::kNone : Looks::kStart;
}

class ShowAttendTell : public GradientTask {
 public:
  explicit ShowAttendTell(const RunOptions& run_options)
      : run_options_(run_options), gallery_(run_options.options) {}

  void read(const Source& source) override {
    const RegionShape known = gallery_.shape();
    if (source.path.empty() || data::is_mnist(source.path)) {
      generate(source);
    } else {
      set_ = data::read_captions(source.path, {.split = split_request(source)});
      gallery_.fill(set_);
    }
    const RegionShape& found = gallery_.shape();
    if (restored_ && (found.count != known.count || found.width() != known.width()))
      throw data::FileError(
          source.path, 0,
          fmt::format("{} regions of {} numbers, expected {} of {} as in training", found.count,
                      found.width(), known.count, known.width()));
    if (restored_) encode();
  }
  std::string read_in_words() const override {
    size_t captions = 0;
    for (const data::Captioned& item : set_.items) captions += item.captions.size();
    std::string out =
        fmt::format("{} pictures, {} captions, {} regions of {} numbers", set_.items.size(),
                    captions, gallery_.shape().count, gallery_.shape().width());
    for (const std::string& note : set_.notes) out += "; " + note;
    return out;
  }

  void prepare() override {
    std::vector<std::vector<std::string>> captions;
    for (const int64_t item : set_.splits.train)
      for (const std::string& caption : set_.items[static_cast<size_t>(item)].captions)
        captions.push_back(data::caption_words(caption));
    vocabulary_ =
        data::Vocabulary::of(captions, {.least_count = run_options_.options.integer("rare")});
    encode();
  }
  Assets assets() const override {
    const RegionShape& shape = gallery_.shape();
    return {.facts = {{"side", shape.side},
                      {"grid", shape.grid},
                      {"channels", shape.channels},
                      {"array_width", shape.array_width},
                      {"regions", shape.count}},
            .files = {{kVocabularyFile, vocabulary_.text()}}};
  }
  void restore(const Assets& assets) override {
    vocabulary_ = data::Vocabulary::parse(train::file_of(assets, kVocabularyFile), kVocabularyFile);
    const train::Fields facts(assets.facts, "facts.");
    gallery_.restore({.side = facts.integer("side", 0, data::kWidestPicture),
                      .grid = facts.integer("grid", 0, 64),
                      .channels = facts.integer("channels", 0, 4096),
                      .array_width = facts.integer("array_width", 0, data::kWidestRegion),
                      .count = facts.integer("regions", 1, data::kMostRegions)});
    restored_ = true;
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    model_ = std::make_shared<Model>(Shape{.words = vocabulary_.size(),
                                           .regions = gallery_.shape(),
                                           .embedding = o.integer("embedding"),
                                           .width = o.integer("width"),
                                           .attention = o.integer("attention"),
                                           .dropout = o.number("dropout"),
                                           .looks = looks_named(o.text("looks"))});
    if (!restored_ && gallery_.shape().side == 0) {
      const auto [mean, deviation] = gallery_.moments(set_.splits.train);
      model_->standardise(mean, deviation);
    }
    return model_;
  }
  std::vector<uint64_t> item_keys(Split split) const override { return set_.splits.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(split == Split::kTrain ? lines_.size()
                                                       : set_.splits.of(split).size());
  }
  std::vector<int64_t> lengths() const override {
    Ids out;
    for (const Line& line : lines_) out.push_back(static_cast<int64_t>(line.ids.size()) + 1);
    return out;
  }

  Loss loss(const Batch& batch) override {
    const Lines lines = batch_of(lines_, batch.items, run_options_.device);
    const OptionValues& o = run_options_.options;
    const Told told = teller().follow(lines);
    const Losses all = losses(*model_, told, lines.targets, lines.real,
                              {.coverage = o.number("coverage"),
                               .share = o.text("target") == "share",
                               .reward = o.number("reward"),
                               .entropy = o.number("entropy")});
    return {all.total, lines.targets.size(0)};
  }

  Evaluation evaluate(Split split) override {
    return judge(teller(), set_, set_.splits.of(split), run_options_.options.integer("beam"));
  }
  // Greedy search is enough to choose an epoch by.
  Metrics validate() override {
    return items(Split::kValidation) ? judge(teller(), set_, set_.splits.validation, 1).metrics
                                     : Metrics{};
  }

  // A line is a picture, an array of regions, or a folder of pictures.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      return answer_pictures(input, number, line,
                             [&](const std::string& path) { return answer(path); });
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    constexpr size_t kShown = 4, kTried = 12;
    std::vector<explain::Explanation> out;
    const auto add = [&](const torch::Tensor& seen, Shown shown) {
      teller().look(seen, shown);
      out.push_back(picture(shown, model_->shape()));
    };
    if (!input) {
      for (const int64_t item : set_.splits.test) {
        if (out.size() >= kTried) break;
        const data::Captioned& one = set_.items[static_cast<size_t>(item)];
        add(gallery_.of(std::span(&item, 1)),
            {.name = one.captions.size() == 1 ? one.captions[0] : one.image,
             .words = {},
             .references = one.captions,
             .picture = gallery_.drawn(set_, item),
             .boxes = one.boxes});
      }
      // Where one caption is the right one, those that were told rightly come first.
      std::stable_partition(out.begin(), out.end(), [](const explain::Explanation& one) {
        return one.outcome.starts_with("right: ");
      });
      out.resize(std::min(out.size(), kShown));
      return out;
    }
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      each_picture(*input, number, line, [&](const std::string& file) {
        add(gallery_.read(file), {.name = file, .words = {}, .picture = gallery_.drawn(file)});
      });
    });
    return out;
  }

  Written write() const override {
    return {.files = data::picture_files(set_.items, gallery_.pixels()),
            .truth = "\"boxes\" of each line: where the thing is that a word names"};
  }

 private:
  void generate(const Source& source) {
    const OptionValues& o = run_options_.options;
    const int64_t train = o.integer("pictures");
    const data::DigitSets digits = data::digits_of(source.path, kDigits, kTestDigits, source.seed);
    const data::Canvases canvases = data::caption_canvases(
        {.side = gallery_.shape().side > 0 ? gallery_.shape().side : o.integer("side"),
         .parts = {.train = train, .validation = train / 8, .test = train / 4},
         .seed = source.seed},
        digits);
    data::DrawnPictures pictures = data::pictures_of(canvases);
    set_ = std::move(pictures.set);
    for (size_t i = 0; i < set_.items.size(); ++i)
      set_.items[i].captions = {data::caption_of(canvases.items[i])};
    gallery_.fill(std::move(pictures.pixels), canvases.side);
  }

  void encode() {
    int64_t cut = 0;
    lines_ = lines_of(set_, set_.splits.train, vocabulary_, run_options_.options.integer("longest"),
                      cut);
    if (cut > 0)
      set_.notes.push_back(
          fmt::format("{} captions are longer than longest={} words: their ends are "
                      "not learnt",
                      cut, run_options_.options.integer("longest")));
  }

  Teller teller() const { return {*model_, gallery_, vocabulary_, run_options_}; }

  Answered answer(const std::string& path) {
    const nn::Hypothesis one =
        teller().search(gallery_.read(path), run_options_.options.integer("beam")).front();
    const std::string caption =
        fmt::format("{}", fmt::join(words_of(one.tokens, vocabulary_), " "));
    return {fmt::format("{}\t{}\n", path, caption), [=] {
              return Json{
                  {"picture", path}, {"answer", caption}, {"log_probability", one.log_probability}};
            }};
  }

  const RunOptions run_options_;
  Gallery gallery_;
  data::CaptionSet set_;
  data::Vocabulary vocabulary_;
  std::vector<Line> lines_;  // to learn from
  bool restored_ = false;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_show_attend_tell(const RunOptions& run_options) {
  return std::make_unique<ShowAttendTell>(run_options);
}

}  // namespace fovea::systems::show_attend_tell
