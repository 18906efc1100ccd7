#include "systems/picture_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/packed.h"
#include "train/answers.h"
#include "train/fields.h"

namespace fovea::systems {

std::vector<Option> picture_options() {
  return {Option("validation", 0.1, "share of the training pictures kept for choosing the epoch")
              .between(0, 0.5),
          Option("pictures", 4500, "generated: number of training pictures").between(10, 1000000),
          Option("side", 28, "your own pictures are scaled to side x side pixels").between(8, 512)};
}

void PictureTask::read(const Source& source) {
  const data::Pictures known = pictures_;
  if (source.path.empty()) {
    pictures_ = data::pictures_of(generated(source.seed), "generated");
  } else {
    pictures_ = data::read_pictures(source.path,
                                    restored_ ? known.side : run_options_.options.integer("side"));
  }
  if (restored_) data::arrange(pictures_, known, source.path);
  labels_ = pictures_.labels;
  std::vector<uint64_t> keys;
  const auto* bytes = reinterpret_cast<const char*>(pictures_.pixels.data());
  const auto size = static_cast<size_t>(pictures_.picture_size());
  for (size_t i = 0; i < labels_.size(); ++i)
    keys.push_back(data::item_key({bytes + i * size, size}));
  data::SplitRequest request = split_request(source);
  request.validation = run_options_.options.number("validation");
  request.test = 0.2;
  request.keys = keys;
  request.classes = labels_;
  const bool own_test = pictures_.own_test > 0 && source.folds == 0;
  if (!own_test) {
    splits_ = data::split(pictures_.size(), request);
    return;
  }
  // If the set has test pictures of its own, they are the test split.
  const int64_t learned_from = pictures_.size() - pictures_.own_test;
  request.test = 0;
  request.all_test = false;
  request.keys.resize(static_cast<size_t>(learned_from));
  request.classes.resize(static_cast<size_t>(learned_from));
  splits_ = source.all_test ? data::Splits{} : data::split(learned_from, request);
  splits_.keys = keys;
  splits_.test.resize(static_cast<size_t>(pictures_.own_test));
  std::iota(splits_.test.begin(), splits_.test.end(), learned_from);
}

std::string PictureTask::read_in_words() const {
  return fmt::format(
      "{} of {} x {} pixels{}, {}", data::count_of(pictures_.size(), "picture"), pictures_.side,
      pictures_.side,
      pictures_.channels > 1 ? fmt::format(" and {} channels", pictures_.channels) : "",
      data::count_of(pictures_.classes.size(), "class"));
}

void PictureTask::prepare() {
  double sum = 0, squares = 0, count = 0;
  const int64_t size = pictures_.picture_size();
  for (const int64_t item : splits_.train)
    for (int64_t i = 0; i < size; ++i) {
      const double pixel = pictures_.pixels[static_cast<size_t>(item * size + i)] / 255.0;
      sum += pixel;
      squares += pixel * pixel;
      count += 1;
    }
  mean_ = count > 0 ? sum / count : 0;
  deviation_ = count > 0 ? std::sqrt(std::max(0.0, squares / count - mean_ * mean_)) : 1;
  if (deviation_ < 1e-3) deviation_ = 1;  // blank pictures
}

Assets PictureTask::assets() const {
  return {.facts = {{"side", pictures_.side},
                    {"channels", pictures_.channels},
                    {"classes", pictures_.classes},
                    {"mean", mean_},
                    {"deviation", deviation_}},
          .files = {}};
}

void PictureTask::restore(const Assets& assets) {
  const train::Fields facts(assets.facts, "facts.");
  pictures_ = {.channels = facts.integer("channels", 1, data::kMostChannels),
               .side = facts.integer("side", 1, data::kWidestPicture),
               .classes = facts.texts("classes")};
  mean_ = facts.number("mean");
  deviation_ = facts.number("deviation");
  if (pictures_.classes.empty()) facts.refuse("classes", "at least one name");
  if (!(deviation_ > 0)) facts.refuse("deviation", "a positive number");
  restored_ = true;
}

torch::Tensor PictureTask::scaled(const torch::Tensor& bytes) const {
  return (bytes.to(torch::kFloat32) / 255 - mean_) / deviation_;
}

torch::Tensor PictureTask::pixels(std::span<const int64_t> items) const {
  const int64_t size = pictures_.picture_size();
  torch::Tensor out = torch::empty({static_cast<int64_t>(items.size()), size}, torch::kUInt8);
  for (size_t i = 0; i < items.size(); ++i)
    std::copy_n(pictures_.pixels.data() + items[i] * size, size,
                out.data_ptr<uint8_t>() + static_cast<int64_t>(i) * size);
  return scaled(out)
      .reshape({-1, pictures_.channels, pictures_.side, pictures_.side})
      .to(run_options_.device);
}

std::vector<PictureGroup> PictureTask::groups(const std::vector<ShownPicture>& shown,
                                              size_t of_a_class) const {
  std::vector<PictureGroup> out;
  if (splits_.test.empty()) {
    for (const ShownPicture& one : shown) out.push_back({one.name, one.pixels.unsqueeze(0)});
    return out;
  }
  std::vector<std::vector<int64_t>> of_class(pictures_.classes.size());
  for (const int64_t item : splits_.test) {
    auto& items = of_class[static_cast<size_t>(labels_[static_cast<size_t>(item)])];
    if (items.size() < of_a_class) items.push_back(item);
  }
  for (size_t i = 0; i < of_class.size(); ++i)
    if (!of_class[i].empty()) out.push_back({"class " + pictures_.classes[i], pixels(of_class[i])});
  return out;
}

std::string PictureTask::outcome(const ShownPicture& picture) {
  const torch::Tensor p = judged(picture.pixels.unsqueeze(0)).softmax(1)[0];
  const int64_t best = p.argmax().item<int64_t>();
  const std::string said = fmt::format(
      "{}, p = {:.3f}", pictures_.classes[static_cast<size_t>(best)], p.max().item<double>());
  if (!picture.label) return said;
  return best == *picture.label
             ? "right: " + said
             : fmt::format("wrong: {} (right: {})", said,
                           pictures_.classes[static_cast<size_t>(*picture.label)]);
}

std::vector<ShownPicture> PictureTask::surest_of_each_class() {
  constexpr size_t kCompared = 20;
  std::vector<std::vector<int64_t>> of_class(pictures_.classes.size());
  for (const int64_t item : splits_.test) {
    auto& items = of_class[static_cast<size_t>(labels_[static_cast<size_t>(item)])];
    if (items.size() < kCompared) items.push_back(item);
  }
  std::vector<std::pair<double, ShownPicture>> found;
  for (size_t label = 0; label < of_class.size(); ++label) {
    if (of_class[label].empty()) continue;
    const torch::Tensor p =
        judged(pixels(of_class[label])).softmax(1).select(1, static_cast<int64_t>(label));
    const int64_t item = of_class[label][static_cast<size_t>(p.argmax().item<int64_t>())];
    found.push_back({p.max().item<double>(),
                     {.name = fmt::format("picture {}, class {}", item, pictures_.classes[label]),
                      .pixels = pixels(std::span(&item, 1))[0],
                      .label = static_cast<int64_t>(label),
                      .item = item}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ShownPicture> out;
  for (auto& [p, picture] : found) out.push_back(std::move(picture));
  return out;
}

ShownPicture PictureTask::shown(const std::string& path) const {
  if (path.empty()) throw InvalidArgument("a blank line, expected a picture's path");
  const std::vector<uint8_t> bytes = data::read_picture(path, pictures_.channels, pictures_.side);
  const torch::Tensor raw = torch::tensor(at::ArrayRef<uint8_t>(bytes), torch::kUInt8);
  return {.name = path,
          .pixels = scaled(raw)
                        .reshape({pictures_.channels, pictures_.side, pictures_.side})
                        .to(run_options_.device)};
}

void PictureTask::predict(Input input, std::ostream& out) {
  answer_lines(input, out, [&](size_t, std::string_view line) -> Answered {
    const ShownPicture picture = shown(std::string(line));
    const torch::Tensor p = judged(picture.pixels.unsqueeze(0)).softmax(1)[0];
    const auto best = static_cast<size_t>(p.argmax().item<int64_t>());
    const std::string besides = remark(picture.pixels.unsqueeze(0));
    return {fmt::format("{}\t{}\t{:.4f}{}{}\n", picture.name, pictures_.classes[best],
                        p.max().item<double>(), besides.empty() ? "" : "\t", besides),
            [this, p, besides, name = picture.name] {
              Json fields = {{"picture", name}};
              fields.update(class_fields(pictures_.classes, to_floats(p)));
              if (!besides.empty()) fields["remark"] = besides;
              return fields;
            }};
  });
}

std::vector<explain::Explanation> PictureTask::explain(Input* input) {
  std::vector<ShownPicture> chosen;
  if (input) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      chosen.push_back(shown(std::string(line)));
    });
  } else {
    chosen = surest_of_each_class();
  }
  if (chosen.empty()) return {};
  return drawn(chosen);
}

explain::Picture grey(const torch::Tensor& map, double black, double white) {
  const torch::Tensor bytes =
      ((map.detach().to(torch::kFloat64) - black) / std::max(1e-9, white - black) * 255)
          .round()
          .clamp(0, 255)
          .to(torch::kCPU, torch::kUInt8)
          .contiguous();
  explain::Picture out{static_cast<int>(map.size(1)), static_cast<int>(map.size(0)), 1, {}};
  out.pixels.assign(bytes.data_ptr<uint8_t>(), bytes.data_ptr<uint8_t>() + bytes.numel());
  return out;
}

}  // namespace fovea::systems
