#include "systems/mil/slides.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/generated/tissue.h"
#include "data/packed.h"
#include "data/pictures/image.h"
#include "data/pictures/readable.h"
#include "data/random.h"
#include "explain/capture.h"
#include "systems/mil/model.h"
#include "systems/mil/windows.h"
#include "systems/normaliser_option.h"
#include "systems/picture_lines.h"
#include "train/answers.h"
#include "train/classification_task.h"

namespace fovea::systems::mil {
namespace {

namespace fs = std::filesystem;

class SlideTask : public ClassificationTask {
 public:
  explicit SlideTask(const RunOptions& run_options)
      : ClassificationTask(run_options),
        plan_{.side = run_options.options.integer("windows"),
              .stride = run_options.options.integer("stride"),
              .positions = run_options.options.flag("positions")} {
    constexpr int64_t kLeast = 16;  // what the network needs
    if (plan_.side < kLeast)
      throw UsageError(
          fmt::format("--set windows={}: expected 0, or at least {}", plan_.side, kLeast));
  }

  void read(const Source& source) override {
    slides_.clear();
    note_.clear();
    names_.clear();
    if (source.path.empty())
      draw(source);
    else
      read_folder(source);
    labels_.clear();
    lengths_.clear();
    for (size_t i = 0; i < slides_.size(); ++i) {
      labels_.push_back(slides_[i].positive);
      lengths_.push_back(static_cast<int64_t>(places(slides_[i].image, plan_).size()));
    }
    if (!source.path.empty()) part(source);
  }
  std::string read_in_words() const override {
    return fmt::format("{} pictures, {} windows of {} x {} pixels{}{}", slides_.size(),
                       std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0}), plan_.side,
                       plan_.side, note_.empty() ? "" : "; ", note_);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    return model_ =
               std::make_shared<Model>(Shape{.side = plan_.side,
                                             .filters = o.integer("filters"),
                                             .hidden = o.integer("hidden"),
                                             .attention = o.integer("attention"),
                                             .pool = o.text("pool"),
                                             .normaliser = normaliser_named(o.text("normaliser")),
                                             .channels = 3,
                                             .context = o.text("query") == "context",
                                             .places = plan_.positions ? 2 : 0});
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(packed(items));
  }
  // Positive pictures: does the window with the largest weight hold a cell?
  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    for (const int64_t item : items) {
      const data::Slide& slide = slides_[static_cast<size_t>(item)];
      if (slide.cells.empty()) {
        out.push_back(-1);
        continue;
      }
      const torch::Tensor weights = model_->weights_of(packed({&item, 1}));
      count_zeros(weights);
      out.push_back(holds(places(slide.image, plan_),
                          slide.cells)[static_cast<size_t>(weights.argmax().item<int64_t>())]);
    }
    return out;
  }

  // A line is a picture, or a folder of pictures: path, class, probability, the weightiest window.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      return answer_pictures(input, number, line,
                             [&](const std::string& path) { return answer(path); });
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    if (input) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        each_picture(*input, number, line, [&](const std::string& path) {
          out.push_back(drawn(path, {.image = data::read_colour_image(path)}, false));
        });
      });
      return out;
    }
    const auto add = [&](bool positive, int64_t wanted) {
      for (const int64_t item : splits_.test) {
        const auto at = static_cast<size_t>(item);
        if (slides_[at].positive != positive || wanted-- <= 0) continue;
        out.push_back(drawn(names_[at], slides_[at], true));
      }
    };
    add(true, 3);
    add(false, 1);
    return out;
  }

  Written write() const override {
    Written out{.truth = "truth.jsonl, the boxes of the cells, as shares of the side"};
    for (size_t i = 0; i < slides_.size(); ++i) {
      const std::string name = fmt::format("{}/{}.png", labels_[i], names_[i]);
      out.files[name] = data::png_bytes(slides_[i].image);
      Json cells = Json::array();
      for (const data::Box& box : slides_[i].cells)
        cells.push_back({box.left, box.top, box.width, box.height});
      out.files["truth.jsonl"] += Json{{"picture", name}, {"cells", cells}}.dump() + "\n";
    }
    return out;
  }

 private:
  void draw(const Source& source) {
    const OptionValues& o = run_options_.options;
    const auto add = [&](std::vector<int64_t>& split, int64_t count, uint64_t purpose) {
      for (data::Slide& slide : data::generate_tissue(count, data::mix(source.seed, purpose))) {
        split.push_back(static_cast<int64_t>(slides_.size()));
        names_.push_back(fmt::format("slide{:05}", slides_.size()));
        slides_.push_back(std::move(slide));
      }
    };
    splits_ = {};
    if (!source.all_test) {
      add(splits_.train, o.integer("bags"), 21);
      add(splits_.validation, o.integer("validation_bags"), 22);
    }
    add(splits_.test, o.integer("test_bags"), 23);
  }

  // LABEL/picture, labels 0 and 1.
  void read_folder(const Source& source) {
    data::Readable readable;
    for (const char* label : {"0", "1"}) {
      const fs::path folder = fs::path(source.path) / label;
      std::error_code ignored;
      if (!fs::is_directory(folder, ignored)) continue;
      for (const std::string& file : data::image_files(folder.string())) {
        readable.next([&] {
          slides_.push_back(
              {.image = data::read_colour_image(file), .positive = *label == '1', .cells = {}});
          names_.push_back(fmt::format("{}/{}", label, fs::path(file).filename().string()));
        });
      }
    }
    note_ = readable.note(source.path).value_or("");
    const auto positive = std::count_if(slides_.begin(), slides_.end(),
                                        [](const data::Slide& one) { return one.positive; });
    if (slides_.empty() ||
        (!source.all_test && (positive == 0 || positive == static_cast<int64_t>(slides_.size()))))
      throw data::FileError(
          source.path, 0,
          fmt::format("{} negative and {} positive pictures, expected some of both: 0/*.png, "
                      "1/*.png or *.jpg",
                      static_cast<int64_t>(slides_.size()) - positive, positive));
  }
  void part(const Source& source) {
    data::SplitRequest request = split_request(source);
    request.validation = run_options_.options.number("validation");
    request.test = 0.2;
    request.classes = labels_;
    for (const data::Slide& slide : slides_)
      request.keys.push_back(data::item_key(
          {reinterpret_cast<const char*>(slide.image.pixels.data()), slide.image.pixels.size()}));
    splits_ = data::split(static_cast<int64_t>(slides_.size()), request);
  }

  data::Packed packed(std::span<const int64_t> items) const {
    std::vector<std::vector<float>> bags;
    for (const int64_t item : items)
      bags.push_back(windows_of(slides_[static_cast<size_t>(item)].image, plan_));
    return packed(bags);
  }
  data::Packed packed(const std::vector<std::vector<float>>& bags) const {
    std::vector<int64_t> all(bags.size());
    std::iota(all.begin(), all.end(), 0);
    return data::pack_features(bags, plan_.width(), all).to(run_options_.device);
  }

  Answered answer(const std::string& path) const {
    const data::Image image = data::read_colour_image(path);
    const data::Packed bag = packed({windows_of(image, plan_)});
    const torch::Tensor both = model_->forward(bag).softmax(1)[0],
                        weights = model_->weights_of(bag);
    const auto best = static_cast<size_t>(weights.argmax().item<int64_t>());
    const data::Box box = places(image, plan_)[best];
    const auto left = std::lround(box.left * static_cast<double>(image.width)),
               top = std::lround(box.top * static_cast<double>(image.height));
    const double p = both[1].item<double>();
    return {fmt::format("{}\t{}\t{:.4f}\twindow {} of {} at {},{}, weight {:.3f}\n", path,
                        p > 0.5 ? 1 : 0, std::max(p, 1 - p), best + 1, weights.numel(), left, top,
                        weights.max().item<double>()),
            [=] {
              Json fields = {{"picture", path}};
              fields.update(class_fields({"0", "1"}, to_floats(both)));
              fields["window"] = {{"left", left}, {"top", top}, {"number", best + 1}};
              fields["weights"] = to_floats(weights.flatten());
              return fields;
            }};
  }

  // The weights where the windows are. Windows overlap, so that each is drawn by its middle.
  explain::Explanation drawn(const std::string& name, const data::Slide& slide, bool known) const {
    const data::Packed bag = packed({windows_of(slide.image, plan_)});
    const std::vector<data::Box> boxes = places(slide.image, plan_);
    const double p = model_->forward(bag).softmax(1)[0][1].item<double>();
    explain::Explanation out;
    out.title = name;
    out.view = explain::View::kImage;
    if (model_->attends()) {
      const Model::Parts parts = model_->parts(model_->embed(bag.values), bag.offsets);
      explain::label(out, parts.choices, {}, parts.key.size(2));
    } else {
      out.score = "pooling";
      out.normaliser = run_options_.options.text("pool");
      out.structure = "bag";
      out.scale = "1";
    }
    out.query_label = "picture";
    out.key_label = "window";
    out.outcome = fmt::format("p(positive) = {:.3f}", p);
    if (known) out.outcome += slide.positive ? ", and it is" : ", and it is not";
    out.queries.emplace_back().text = "weight of each window";
    constexpr int64_t kLongest = 2048;  // pixels of a side that is drawn
    const data::Image shown = data::shrunk(slide.image, kLongest);
    out.picture = explain::Picture{static_cast<int>(shown.width), static_cast<int>(shown.height), 3,
                                   shown.pixels};
    const double share =
        std::min(1.0, static_cast<double>(plan_.stride) / static_cast<double>(plan_.side));
    for (size_t i = 0; i < boxes.size(); ++i) {
      const data::Box& box = boxes[i];
      explain::Item& item = out.keys.emplace_back();
      item.text = fmt::format("window {}", i + 1);
      item.position = {box.left + box.width * (1 - share) / 2,
                       box.top + box.height * (1 - share) / 2, box.width * share,
                       box.height * share};
    }
    out.maps.emplace_back().dense = to_floats(model_->weights_of(bag));
    if (!slide.cells.empty()) {
      out.truth = explain::Truth{.label = "windows that hold a whole cell"};
      const std::vector<uint8_t> held = holds(boxes, slide.cells);
      for (size_t i = 0; i < held.size(); ++i)
        if (held[i]) out.truth->sure.push_back({0, static_cast<int32_t>(i), 1});
    }
    if (share < 1)
      out.notes.push_back(
          fmt::format("Windows of {} pixels overlap: each is drawn by its middle {}.", plan_.side,
                      plan_.stride));
    if (!slide.positive && known)
      out.notes.push_back("A negative picture has nothing to find: its weights say little.");
    return out;
  }

  const WindowPlan plan_;
  std::vector<data::Slide> slides_;
  std::string note_;  // of pictures that cannot be read
  std::vector<std::string> names_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_slides(const RunOptions& run_options) {
  return std::make_unique<SlideTask>(run_options);
}

}  // namespace fovea::systems::mil
