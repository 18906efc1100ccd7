#include "systems/dynamic_convolution/view.h"

#include <ATen/ATen.h>

namespace fovea::systems {
namespace {

constexpr int64_t kSideBySide = 4;  // heads whose bars can still be told apart

}  // namespace

explain::Plot kernel_bars(const at::Tensor& kernels, KernelSide side, const std::string& name) {
  const at::Tensor mean = kernels.mean(0).to(at::kCPU, at::kDouble).contiguous();
  const int64_t heads = mean.size(0), width = mean.size(1);
  const int64_t first = side == KernelSide::kBoth ? -(width / 2) : 1 - width;
  explain::Plot plot;
  plot.title = name + ": kernels, mean over the sentence";
  plot.x_label = "offset from the word itself";
  plot.y_label = "weight";
  if (heads > kSideBySide) plot.slider = explain::Slider{"head", {}, 0};
  for (int64_t h = 0; h < heads; ++h) {
    explain::Curve bars{.kind = explain::Curve::Kind::kBars,
                        .label = "head " + std::to_string(h + 1),
                        .step = plot.slider ? static_cast<int>(h) : -1};
    for (int64_t j = 0; j < width; ++j) {
      bars.x.push_back(static_cast<double>(first + j));
      bars.y.push_back(mean[h][j].item<double>());
    }
    if (plot.slider) plot.slider->values.push_back(static_cast<double>(h + 1));
    plot.curves.push_back(std::move(bars));
  }
  return plot;
}

}  // namespace fovea::systems
