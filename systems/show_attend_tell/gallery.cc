#include "systems/show_attend_tell/gallery.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/files/file.h"
#include "data/pictures/picture_questions.h"
#include "data/pictures/readable.h"
#include "train/interrupt.h"
#include "train/usage_error.h"

namespace fovea::systems::show_attend_tell {
namespace {

constexpr int64_t kLongest = 448;  // pixels of a side that is drawn

// float32 mean[channels], then basis[dimensions][channels].
std::pair<torch::Tensor, torch::Tensor> read_projection(const std::string& path, int64_t channels) {
  const std::string bytes = data::read_file(path);
  const size_t row = static_cast<size_t>(channels) * sizeof(float);
  if (bytes.size() % row != 0 || bytes.size() < 2 * row)
    throw data::FileError(path, 0,
                          fmt::format("{} bytes, expected float32 mean[{}] and basis[…][{}]",
                                      bytes.size(), channels, channels));
  const auto rows = static_cast<int64_t>(bytes.size() / row);
  const torch::Tensor all =
      torch::from_blob(const_cast<char*>(bytes.data()), {rows, channels}, torch::kFloat32).clone();
  if (!torch::isfinite(all).all().item<bool>())
    throw data::FileError(path, 0, "a number that is not finite");
  return {all[0], all.slice(0, 1)};
}

}  // namespace

Gallery::Gallery(const OptionValues& options) {
  const std::string backbone = options.text("backbone"), pca = options.text("pca");
  if (backbone.empty()) {
    if (!pca.empty())
      throw UsageError("--set pca=: expected with backbone=, whose features it takes");
    shape_ = {.side = options.integer("side"),
              .grid = options.integer("grid"),
              .channels = options.integer("channels")};
    shape_.count = shape_.grid * shape_.grid;
    return;
  }
  backbone_ = std::make_shared<backbone::MobileNetV2>(backbone);
  shape_ = {.side = 0,
            .grid = backbone_->grid(),
            .channels = 0,
            .array_width = backbone_->channels(),
            .count = backbone_->grid() * backbone_->grid()};
  if (pca.empty()) return;
  std::tie(mean_, basis_) = read_projection(pca, backbone_->channels());
  shape_.array_width = basis_.size(0);
}

torch::Tensor Gallery::features_of(const data::Image& image) const {
  const torch::Tensor numbers =
      backbone_->features(backbone::squashed(image, backbone_->side()))[0];
  return numbers;
}

void Gallery::fill(data::CaptionSet& set) {
  if (!set.regions.empty()) {
    if (backbone_) throw UsageError("--set backbone=: this data has arrays of regions already");
    arrays_ = set.regions;
    const auto side =
        static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(arrays_.regions()))));
    shape_ = {.side = 0,
              .grid = side * side == arrays_.regions() ? side : 0,
              .channels = 0,
              .array_width = arrays_.width(),
              .count = arrays_.regions()};
    return;
  }
  data::Readable readable;
  data::PictureStore store(set.folder, std::max<int64_t>(1, shape_.side));
  for (const data::Captioned& item : set.items) {
    train::stop_if_interrupted("while reading pictures");
    auto& to = backbone_ ? features_ : pixels_;
    to.emplace_back();
    readable.next([&] {
      if (backbone_) {
        const torch::Tensor numbers = features_of(store.whole(item.image)).contiguous();
        to.back().assign(numbers.data_ptr<uint8_t>(),
                         numbers.data_ptr<uint8_t>() + numbers.numel());
      } else {
        to.back() = store.at(item.image);
      }
    });
  }
  if (auto note = readable.note(set.folder)) set.notes.push_back(*std::move(note));
  readable.leave_out_of(set.splits);
}

void Gallery::fill(std::vector<std::vector<uint8_t>> pixels, int64_t side) {
  if (shape_.side != side)
    throw UsageError(fmt::format("generated pictures have side={}, without backbone=", side));
  pixels_ = std::move(pixels);
}

data::Idx Gallery::pixels() const {
  data::Idx out{{static_cast<int64_t>(pixels_.size()), shape_.side, shape_.side, 3}, {}};
  for (const auto& one : pixels_) out.values.insert(out.values.end(), one.begin(), one.end());
  return out;
}

torch::Tensor Gallery::pixels_of(const data::Image& image) const {
  const torch::Tensor bytes = torch::from_blob(const_cast<uint8_t*>(image.pixels.data()),
                                               {1, shape_.side, shape_.side, 3}, torch::kUInt8);
  return bytes.permute({0, 3, 1, 2}).to(torch::kFloat32).contiguous() / 127.5 - 1;
}

torch::Tensor Gallery::of(std::span<const int64_t> items) const {
  const auto n = static_cast<int64_t>(items.size());
  if (!arrays_.empty()) {
    torch::Tensor out = torch::empty({n, shape_.count, shape_.array_width});
    for (int64_t i = 0; i < n; ++i)
      arrays_.copy(items[static_cast<size_t>(i)],
                   out.data_ptr<float>() + i * shape_.count * shape_.array_width);
    return out;
  }
  std::vector<torch::Tensor> rows;
  for (const int64_t item : items) {
    if (!backbone_) {
      rows.push_back(pixels_of({shape_.side, shape_.side, 3, pixels_[static_cast<size_t>(item)]}));
      continue;
    }
    const std::vector<uint8_t>& bytes = features_[static_cast<size_t>(item)];
    const torch::Tensor numbers =
        torch::from_blob(const_cast<uint8_t*>(bytes.data()),
                         {1, shape_.count, backbone_->channels()}, torch::kUInt8);
    rows.push_back(real(numbers));
  }
  return torch::cat(rows);
}

torch::Tensor Gallery::real(const torch::Tensor& numbers) const {
  const torch::Tensor x =
      (numbers.to(torch::kFloat32) - static_cast<double>(backbone_->zero())) * backbone_->scale();
  return basis_.defined() ? torch::matmul(x - mean_, basis_.t()) : x;
}

torch::Tensor Gallery::read(const std::string& path) const {
  if (path.ends_with(".npy") || path.ends_with(".safetensors")) {
    if (shape_.side > 0)
      throw UsageError(path + ": an array of regions, expected a picture as in training");
    const data::Regions one = data::read_region_file(path);
    if (one.regions() != shape_.count || one.width() != shape_.array_width)
      throw InvalidArgument(fmt::format("{}: {} regions of {} numbers, expected {} of {}", path,
                                        one.regions(), one.width(), shape_.count,
                                        shape_.array_width));
    torch::Tensor out = torch::empty({1, one.regions(), one.width()});
    one.copy(0, out.data_ptr<float>());
    return out;
  }
  const data::Image image = data::PictureStore("", 1).whole(path);
  if (shape_.side > 0)
    return pixels_of(image.width == shape_.side && image.height == shape_.side
                         ? image
                         : data::scaled(image, shape_.side));
  if (!backbone_)
    throw UsageError(path +
                     ": a picture, expected an array (.npy) of regions as in training, or "
                     "--set backbone=FOLDER that makes regions of it");
  const torch::Tensor out = real(features_of(image).unsqueeze(0));
  if (out.size(1) != shape_.count || out.size(2) != shape_.array_width)
    throw InvalidArgument(
        fmt::format("backbone: {} regions of {} numbers, expected {} of {} as in "
                    "training; a projection is given by --set pca=FILE",
                    out.size(1), out.size(2), shape_.count, shape_.array_width));
  return out;
}

data::Image Gallery::drawn(const data::CaptionSet& set, int64_t item) const {
  // Files are drawn in their own shape, whatever the network sees of them.
  if (set.folder.empty()) return {shape_.side, shape_.side, 3, pixels_[static_cast<size_t>(item)]};
  return data::shrunk(set.drawn(item), kLongest);
}

data::Image Gallery::drawn(const std::string& path) const {
  if (path.ends_with(".npy") || path.ends_with(".safetensors")) return {};
  return data::shrunk(data::PictureStore("", 1).whole(path), kLongest);
}

std::pair<torch::Tensor, double> Gallery::moments(std::span<const int64_t> items) const {
  torch::Tensor sum = torch::zeros({shape_.array_width}, torch::kFloat64);
  double squares = 0, count = 0;
  for (size_t from = 0; from < items.size(); from += 64) {
    const torch::Tensor some =
        of(items.subspan(from, std::min<size_t>(64, items.size() - from))).to(torch::kFloat64);
    sum += some.sum(at::IntArrayRef{0, 1});
    squares += some.square().sum().item<double>();
    count += static_cast<double>(some.size(0) * some.size(1));
  }
  if (count == 0) return {sum.to(torch::kFloat32), 1};
  const torch::Tensor mean = sum / count;
  const double variance = squares / (count * static_cast<double>(shape_.array_width)) -
                          mean.square().mean().item<double>();
  return {mean.to(torch::kFloat32), variance > 1e-12 ? std::sqrt(variance) : 1};
}

}  // namespace fovea::systems::show_attend_tell
