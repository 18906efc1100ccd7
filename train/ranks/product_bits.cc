#include "train/ranks/product_bits.h"

#include <torch/torch.h>

#include <array>

#include "io/sha256.h"
#include "nn/products/product.h"

namespace fovea::train {
namespace {

// Whole numbers in float, whose bits are the same everywhere, scaled to -1 … 1.
at::Tensor numbers(int64_t rows, int64_t columns) {
  const at::Tensor places = torch::arange(rows * columns, torch::kInt64);
  return (places * 7'919 % 65'537 - 32'768).to(torch::kFloat32).view({rows, columns}) / 32'768;
}

class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace

std::string bits_of_products() {
  const at::NoGradGuard guard;
  const OneThread alone;
  io::Sha256 sum;
  const auto add = [&](const at::Tensor& x) {
    const at::Tensor flat = x.contiguous();
    sum.add({static_cast<const char*>(flat.const_data_ptr()), static_cast<size_t>(flat.nbytes())});
  };
  // A small product, and one that oneDNN may get; the three of a layer and its gradients.
  for (const auto& [rows, inputs, outputs] : {std::array{9, 50, 33}, std::array{96, 300, 200}}) {
    const at::Tensor x = numbers(rows, inputs), weight = numbers(outputs, inputs);
    const at::Tensor y = nn::projected(x, weight);
    add(y);
    add(nn::projected(y, weight.t()));
    add(nn::projected(y.t(), x.t()));
  }
  constexpr size_t kDigits = 12;
  return sum.hex().substr(0, kDigits);
}

}  // namespace fovea::train
