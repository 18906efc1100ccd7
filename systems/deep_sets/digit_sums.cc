// Sums of digits: trained on sets of up to ten, tested on sets of up to a hundred.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/packed.h"
#include "data/pictures/image.h"
#include "data/random.h"
#include "systems/deep_sets/digits.h"
#include "systems/deep_sets/model.h"
#include "systems/deep_sets/tasks.h"
#include "systems/deep_sets/view.h"
#include "train/answers.h"
#include "train/fields.h"

namespace fovea::systems::deep_sets {
namespace {

constexpr int64_t kSizes[] = {1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100};
constexpr int64_t kSetsOfASize = 500;

// Sets as numbers of pictures in one of the two collections.
struct Sets {
  std::vector<std::vector<int64_t>> members;
  std::vector<float> sums;
};

Sets draw_sets(const data::Digits& digits, int64_t count, int64_t least, int64_t most,
               uint64_t seed) {
  data::Random random(seed);
  Sets out;
  for (int64_t i = 0; i < count; ++i) {
    const auto size =
        least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
    auto& set = out.members.emplace_back();
    float sum = 0;
    for (int64_t k = 0; k < size; ++k) {
      set.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(digits.count))));
      sum += static_cast<float>(digits.labels[static_cast<size_t>(set.back())]);
    }
    out.sums.push_back(sum);
  }
  return out;
}

// Each picture is moved at random by up to `shift` pixels in each direction.
torch::Tensor pictures_of(const data::Digits& digits, const torch::Tensor& members,
                          int64_t shift = 0) {
  const int64_t size = digits.height * digits.width;
  torch::Tensor out = torch::empty({members.numel(), size});
  const torch::Tensor by =
      shift > 0 ? torch::randint(-shift, shift + 1, {members.numel(), 2}, torch::kInt64)
                : torch::zeros({members.numel(), 2}, torch::kInt64);
  for (int64_t i = 0; i < members.numel(); ++i) {
    const int64_t* move = by.data_ptr<int64_t>() + 2 * i;
    data::normalised_digit(digits, members.data_ptr<int64_t>()[i], out.data_ptr<float>() + i * size,
                           {move[0], move[1]});
  }
  return out;
}

double share_exact(const torch::Tensor& answers, const torch::Tensor& truth) {
  return answers.round().eq(truth).to(torch::kFloat64).mean().item<double>();
}

class DigitSums : public GradientTask {
 public:
  explicit DigitSums(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    data::DigitSets digits =
        digits_from(source.path, source.seed, "a table of clouds: --set task=solids");
    train_ = std::move(digits.train);
    test_ = std::move(digits.test);
    if (train_.height != train_.width)
      throw data::FileError(source.path, 0, "expected square pictures");
    if (side_ != 0 && side_ != train_.height) throw other_size(source.path, train_.height, side_);
    side_ = train_.height;
    if (!source.path.empty()) trained_keys_ = keys_of(train_), test_keys_ = keys_of(test_);
    const int64_t most = run_options_.options.integer("largest");
    sets_ = draw_sets(train_, run_options_.options.integer("sets"), 1, most,
                      data::mix(source.seed, 21));
    validation_ = draw_sets(train_, 200, most, most, data::mix(source.seed, 22));
    seed_ = source.seed;
  }
  std::string read_in_words() const override {
    return fmt::format("{} digits to draw sets from, {} to judge by", train_.count, test_.count);
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return split == Split::kTest ? test_keys_ : trained_keys_;
  }
  Written write() const override { return {.files = data::mnist_files({train_, test_})}; }
  Assets assets() const override { return {.facts = {{"side", side_}}, .files = {}}; }
  void restore(const Assets& assets) override {
    side_ = train::Fields(assets.facts, "facts.").integer("side", 1, data::kWidestPicture);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<DigitSum>(
               DigitSum::Shape{.side = side_,
                               .filters = run_options_.options.integer("filters"),
                               .width = run_options_.options.integer("width"),
                               .rho = run_options_.options.text("rho")});
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(split == Split::kTrain        ? sets_.members.size()
                                : split == Split::kValidation ? validation_.members.size()
                                                              : 1);
  }

  // The GRU is trained on the same φ(x), but its gradient does not change φ. So the two models
  // differ only in how they combine elements.
  Loss loss(const Batch& batch) override {
    const data::Packed sets = data::pack_tokens(sets_.members, batch.items);
    const torch::Tensor pictures =
        pictures_of(train_, sets.values, run_options_.options.integer("shift"));
    const torch::Tensor phi = model_->features(pictures.to(run_options_.device)),
                        offsets = sets.offsets.to(run_options_.device);
    const torch::Tensor truth = data::gather(sets_.sums, batch.items).to(run_options_.device);
    // A large set says little about each of its elements, so its loss is divided by its size.
    const torch::Tensor share = 1.0 / offsets.diff().clamp_min(1).to(torch::kFloat32);
    const auto miss = [&](const torch::Tensor& answers) {
      return (torch::smooth_l1_loss(answers, truth, at::Reduction::None) * share).mean();
    };
    return {miss(model_->sums(phi, offsets)) + miss(model_->gru_sums(phi.detach(), offsets)),
            static_cast<int64_t>(batch.items.size())};
  }

  Metrics validate() override {
    const torch::Tensor phi = features_of(train_, validation_);
    const auto [own, other, truth] = answers(phi, relabelled(validation_));
    return {{"loss", torch::smooth_l1_loss(own, truth).item<double>()},
            {"exact", share_exact(own, truth)},
            {"gru_exact", share_exact(other, truth)}};
  }

  Evaluation evaluate(Split split) override {
    const data::Digits& digits = split == Split::kTest ? test_ : train_;
    const torch::Tensor phi = all_features(digits);
    Evaluation out;
    for (const int64_t size : kSizes) {
      const auto [own, other, truth] =
          answers(phi, draw_sets(digits, kSetsOfASize, size, size,
                                 data::mix(seed_, 1000 + static_cast<uint64_t>(size))));
      out.metrics[fmt::format("exact_{}", size)] = share_exact(own, truth);
      out.metrics[fmt::format("gru_exact_{}", size)] = share_exact(other, truth);
      if (size == 10) out.metrics["loss"] = torch::smooth_l1_loss(own, truth).item<double>();
      out.items += kSetsOfASize;
    }
    return out;
  }

  // A line is a folder of pictures; the answer is their sum and what each adds.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const data::Digits digits = digits_in(data::folder_named(input.name, number, line));
      const torch::Tensor phi = all_features(digits);
      const double sum = model_->sums(phi, whole_set(phi))[0].item<double>();
      std::string text =
          fmt::format("{}\t{}\t{}\t", line, fixed(std::round(sum), 0), fixed(sum, 3));
      const std::vector<float> parts = to_floats(model_->contributions(phi));
      // They sum to the answer only if ρ is linear.
      const char* between = model_->rho_is_linear() ? " + " : " ";
      for (size_t i = 0; i < parts.size(); ++i) text += (i ? between : "") + fixed(parts[i], 2);
      return {
          text + "\n", [sum, parts, set = std::string(line)] {
            return Json{
                {"set", set}, {"answer", std::round(sum)}, {"sum", sum}, {"contributions", parts}};
          }};
    });
  }

  // A set of test digits, or the sets that the lines of the input name (as for `predict`): what
  // each picture adds. The first set can be shuffled.
  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    const auto show = [&](const ShownDigits& set, const std::string& outcome) {
      const bool first = std::ranges::none_of(
          out, [](const explain::Explanation& one) { return one.shuffle.has_value(); });
      const explain::Explanation adds = what_each_adds(set, *model_);
      out.push_back(adds);
      if (first) out.push_back(shuffled_digits(adds, outcome, *model_, set.phi));
    };
    if (!input) {
      out.push_back(accuracy_against_size(evaluate(Split::kTest).metrics, kSizes,
                                          run_options_.options.integer("largest")));
      const Sets drawn = draw_sets(test_, 1, 8, 8, data::mix(seed_, 77));
      const std::string sum = fmt::format("{:.0f}", drawn.sums[0]);
      show({"sum " + sum, test_, drawn.members[0], features_of(test_, drawn)},
           "the digits add up to " + sum);
      return out;
    }
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      const std::string folder = data::folder_named(input->name, number, line);
      const data::Digits digits = digits_in(folder);
      std::vector<int64_t> all(static_cast<size_t>(digits.count));
      std::iota(all.begin(), all.end(), 0);
      show({folder, digits, all, all_features(digits)}, "");
    });
    return out;
  }

 private:
  struct Answers {
    torch::Tensor own, gru, truth;
  };
  Answers answers(const torch::Tensor& phi, const Sets& sets) {
    std::vector<int64_t> all(sets.members.size());
    std::iota(all.begin(), all.end(), 0);
    const data::Packed packed = data::pack_tokens(sets.members, all).to(phi.device());
    const torch::Tensor members = phi.index_select(0, packed.values);
    return {model_->sums(members, packed.offsets).cpu(),
            model_->gru_sums(members, packed.offsets).cpu(), data::gather(sets.sums, all)};
  }

  data::Digits digits_in(const std::string& folder) const {
    const std::vector<data::Image> images = data::read_image_bag(folder, side_);
    data::Digits digits{static_cast<int64_t>(images.size()), side_, side_, {}, {}};
    for (const auto& image : images)
      digits.pixels.insert(digits.pixels.end(), image.pixels.begin(), image.pixels.end());
    return digits;
  }

  torch::Tensor all_features(const data::Digits& digits) {
    std::vector<torch::Tensor> parts;
    for (int64_t from = 0; from < digits.count; from += 500)
      parts.push_back(model_->features(
          pictures_of(digits, torch::arange(from, std::min(digits.count, from + 500)))
              .to(run_options_.device)));
    return torch::cat(parts);
  }

  // φ of the pictures of some sets only, in their order; relabelled() counts them through.
  torch::Tensor features_of(const data::Digits& digits, const Sets& sets) {
    std::vector<torch::Tensor> parts;
    for (const auto& set : sets.members)
      parts.push_back(torch::tensor(at::ArrayRef<int64_t>(set), torch::kInt64));
    return model_->features(pictures_of(digits, torch::cat(parts)).to(run_options_.device));
  }
  static Sets relabelled(Sets sets) {
    int64_t next = 0;
    for (auto& set : sets.members)
      for (int64_t& member : set) member = next++;
    return sets;
  }

  const RunOptions run_options_;
  data::Digits train_, test_;
  std::vector<uint64_t> trained_keys_, test_keys_;  // none of generated pictures
  Sets sets_, validation_;
  int64_t side_ = 28;
  uint64_t seed_ = 1;
  std::shared_ptr<DigitSum> model_;
};

}  // namespace

std::unique_ptr<Task> make_digit_sums(const RunOptions& run_options) {
  return std::make_unique<DigitSums>(run_options);
}

}  // namespace fovea::systems::deep_sets
