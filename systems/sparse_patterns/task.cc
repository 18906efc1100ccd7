// Pictures of black and white pixels, each pixel predicted from those before it, row by row.
#include "systems/sparse_patterns/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/pictures/pictures.h"
#include "data/random.h"
#include "systems/sparse_patterns/model.h"
#include "systems/sparse_patterns/view.h"
#include "train/answers.h"
#include "train/descent/finite.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"

namespace fovea::systems::sparse_patterns {
namespace {

constexpr int64_t kDigitSide = 28;  // of generated digits, and of MNIST

Config config_of(const OptionValues& o) {
  const int64_t side = o.integer("side");
  Config out{.side = side,
             .width = o.integer("width"),
             .heads = o.integer("heads"),
             .hidden = o.integer("hidden"),
             .layers = o.integer("layers"),
             .pattern = {.kind = kKinds.of(o.text("pattern")),
                         .stride = o.integer("stride") > 0 ? o.integer("stride") : side,
                         .summary = o.integer("summary"),
                         .global = o.integer("global")},
             .combination = kCombinations.of(o.text("combination"))};
  if (out.pattern.summary > out.pattern.stride)
    throw UsageError(fmt::format("summary: {}, expected at most the stride, {}",
                                 out.pattern.summary, out.pattern.stride));
  return out;
}

class Pixels : public GradientTask {
 public:
  explicit Pixels(const RunOptions& run_options)
      : run_options_(run_options), options_(run_options_.options), config_(config_of(options_)) {}

  void read(const Source& source) override {
    const int64_t most = options_.integer("pictures"), tested = options_.integer("test_pictures");
    data::Pictures read =
        source.path.empty()
            ? data::pictures_of({data::generate_digits(most, data::mix(source.seed, 0x3201)),
                                 data::generate_digits(tested, data::mix(source.seed, 0x3202))},
                                "generated")
            : data::read_pictures(source.path, config_.side);
    binarise(read, source.path.empty() ? "generated" : source.path);
    data::SplitRequest request = split_request(source);
    for (const std::vector<uint8_t>& picture : pictures_)
      request.keys.push_back(
          data::item_key({reinterpret_cast<const char*>(picture.data()), picture.size()}));
    const auto all = static_cast<int64_t>(pictures_.size());
    const bool own_test = read.own_test > 0 && source.folds == 0 && !source.all_test;
    const std::vector<uint64_t> keys = request.keys;
    if (own_test) {
      request.test = 0;
      request.keys.resize(static_cast<size_t>(all - read.own_test));
    }
    splits_ = data::split(own_test ? all - read.own_test : all, request);
    splits_.keys = keys;
    if (own_test)
      for (int64_t i = all - read.own_test; i < all; ++i) splits_.test.push_back(i);
    // The first of each: the order of a set tells nothing.
    const auto shorten = [](std::vector<int64_t>& items, int64_t to) {
      if (static_cast<int64_t>(items.size()) > to) items.resize(static_cast<size_t>(to));
    };
    shorten(splits_.train, most);
    shorten(splits_.validation, tested);
    shorten(splits_.test, tested);
  }
  std::string read_in_words() const override {
    return fmt::format(
        "pictures of {} x {} pixels: {} for training, {} for validation, {} for test", config_.side,
        config_.side, splits_.train.size(), splits_.validation.size(), splits_.test.size());
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(config_);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }

  Loss loss(const Batch& batch) override {
    const torch::Tensor pixels = pixels_of(Split::kTrain, batch.items);
    return {nats(pixels) / static_cast<double>(pixels.numel()), pixels.numel()};
  }

  Evaluation evaluate(Split split) override {
    const torch::NoGradGuard no_grad;
    double sum = 0, count = 0;
    for (const auto& items :
         data::ordered_batches(items(split), {}, {.items = train::recipe_of(options_).batch})) {
      train::stop_if_interrupted("while judging");
      const torch::Tensor pixels = pixels_of(split, items);
      sum += train::finite(nats(pixels), "loss").item<double>();
      count += static_cast<double>(pixels.numel());
    }
    Evaluation out;
    out.items = items(split);
    if (count > 0)
      out.metrics = {{"loss", sum / count}, {"bits", sum / count / std::numbers::ln2}};
    else
      out.notes.push_back("no picture to judge");
    return out;
  }

  // A line is the first rows of a picture, or a picture's file of which the upper half is taken; the
  // rest is drawn.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const Begun begun = begun_of(line, input.name, number);
      const torch::Tensor whole = completed(begun);
      std::string text;
      std::vector<std::string> rows;
      for (int64_t r = 0; r < config_.side; ++r) {
        std::string& row = rows.emplace_back();
        for (int64_t c = 0; c < config_.side; ++c)
          row += whole[0][r * config_.side + c].item<int64_t>() != 0 ? '1' : '0';
        text += (r > 0 ? " " : "") + row;
      }
      return {text + "\n", [rows] { return Json{{"rows", rows}}; }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<Begun> begun;
    if (input != nullptr) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        begun.push_back(begun_of(line, input->name, number));
      });
    } else if (!splits_.test.empty()) {
      constexpr size_t kShown = 3;
      std::vector<int64_t> nearest = nearest_to_the_truth();
      nearest.resize(std::min(kShown, nearest.size()));
      for (const int64_t i : nearest)
        begun.push_back({pixels_of(Split::kTest, std::vector<int64_t>{i}), half()});
    }
    std::vector<explain::Explanation> out;
    for (const Begun& one : begun) {
      out.push_back(completion(*model_, completed(one).to(run_options_.device), one.given));
      out.back().title = fmt::format(
          "Picture {}, completed pixel by pixel, and what a pixel looked at", out.size());
    }
    for (explain::Explanation& one : pattern_pictures(config_)) out.push_back(std::move(one));
    return out;
  }

  Written write() const override {
    data::Pictures all{.side = config_.side, .classes = {"picture"}};
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
      for (const int64_t item : splits_.of(split)) {
        for (const uint8_t pixel : pictures_[static_cast<size_t>(item)])
          all.pixels.push_back(pixel != 0 ? 255 : 0);
        all.labels.push_back(0);
      }
    all.own_test = items(Split::kTest);
    return {.files = data::mnist_files(data::digit_sets_of(all))};
  }

 private:
  struct Begun {
    torch::Tensor pixels;  // [pictures, n]; those from `given` on do not matter
    int64_t given = 0;
  };

  // The first test pictures, those first whose drawn half differs least from their own, for the
  // ink that it has.
  std::vector<int64_t> nearest_to_the_truth() {
    constexpr int64_t kCompared = 32;
    std::vector<int64_t> out(static_cast<size_t>(std::min(kCompared, items(Split::kTest))));
    std::iota(out.begin(), out.end(), 0);
    const torch::Tensor truth = pixels_of(Split::kTest, out);
    const torch::Tensor drawn = completed({truth, half()}).slice(1, half());
    const torch::Tensor own = truth.cpu().slice(1, half());
    const std::vector<float> far =
        to_floats(drawn.ne(own).sum(1) / own.sum(1).clamp_min(1).to(torch::kFloat));
    std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) {
      return far[static_cast<size_t>(a)] < far[static_cast<size_t>(b)];
    });
    return out;
  }
  int64_t half() const { return config_.side / 2 * config_.side; }

  torch::Tensor nats(const torch::Tensor& pixels) {
    return torch::binary_cross_entropy_with_logits(
        model_->forward(pixels), pixels.to(torch::kFloat), {}, {}, at::Reduction::Sum);
  }

  // Pixels of half the brightness and more are 1; a picture twice as large is made smaller first.
  std::vector<uint8_t> binarised(const uint8_t* pixels, int64_t side) const {
    const int64_t factor = side / config_.side;
    std::vector<uint8_t> out;
    for (int64_t r = 0; r < config_.side; ++r)
      for (int64_t c = 0; c < config_.side; ++c) {
        int64_t sum = 0;
        for (int64_t y = 0; y < factor; ++y)
          for (int64_t x = 0; x < factor; ++x)
            sum += pixels[(r * factor + y) * side + c * factor + x];
        out.push_back(2 * sum >= 255 * factor * factor);
      }
    return out;
  }
  void binarise(const data::Pictures& read, const std::string& path) {
    if (read.channels != 1)
      throw data::FileError(path, 0,
                            fmt::format("pictures of {} channels, expected 1", read.channels));
    if (read.side % config_.side != 0)
      throw data::FileError(
          path, 0,
          fmt::format("pictures of {0} x {0} pixels, expected a multiple of side, "
                      "{1}",
                      read.side, config_.side));
    pictures_.clear();
    for (int64_t i = 0; i < read.size(); ++i)
      pictures_.push_back(binarised(read.pixels.data() + i * read.picture_size(), read.side));
  }

  torch::Tensor tensor_of(const std::vector<uint8_t>& picture) const {
    return torch::tensor(at::ArrayRef<uint8_t>(picture), torch::kLong);
  }
  torch::Tensor pixels_of(Split split, std::span<const int64_t> items) const {
    std::vector<torch::Tensor> rows;
    for (const int64_t item : items)
      rows.push_back(
          tensor_of(pictures_[static_cast<size_t>(splits_.of(split)[static_cast<size_t>(item)])]));
    return torch::stack(rows).to(run_options_.device);
  }

  torch::Tensor completed(const Begun& begun) {
    data::Random random(static_cast<uint64_t>(options_.integer("sample_seed")));
    std::vector<float> uniform;
    for (int64_t i = 0; i < config_.pixels(); ++i)
      uniform.push_back(static_cast<float>(random.uniform()));
    return model_
        ->completed(begun.pixels, begun.given,
                    torch::tensor(uniform).unsqueeze(0).to(run_options_.device))
        .cpu();
  }

  Begun begun_of(std::string_view line, const std::string& name, size_t number) const {
    if (line.find_first_not_of("01 \t") != std::string_view::npos) {
      const std::vector<uint8_t> bytes = data::read_picture(
          std::string(line), 1, std::max(config_.side, kDigitSide / config_.side * config_.side));
      const auto side = static_cast<int64_t>(std::lround(std::sqrt(bytes.size())));
      return {tensor_of(binarised(bytes.data(), side)).unsqueeze(0).to(run_options_.device),
              half()};
    }
    std::vector<uint8_t> pixels;
    for (const std::string& row : data::words(line)) {
      if (static_cast<int64_t>(row.size()) != config_.side)
        throw data::FileError(
            name, number, fmt::format("a row of {} pixels, expected {}", row.size(), config_.side));
      for (const char c : row) pixels.push_back(c == '1');
    }
    const auto given = static_cast<int64_t>(pixels.size());
    if (given > config_.pixels())
      throw data::FileError(
          name, number,
          fmt::format("{} rows, expected at most {}", given / config_.side, config_.side));
    pixels.resize(static_cast<size_t>(config_.pixels()));
    return {tensor_of(pixels).unsqueeze(0).to(run_options_.device), given};
  }

  const RunOptions run_options_;
  const OptionValues& options_;
  const Config config_;
  std::vector<std::vector<uint8_t>> pictures_;  // of 0 and 1
  data::Splits splits_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_sparse_patterns(const RunOptions& run_options) {
  return std::make_unique<Pixels>(run_options);
}

}  // namespace fovea::systems::sparse_patterns
