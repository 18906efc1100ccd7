// A convolutional network of 8-bit numbers: a text file with a line for each operator, and the weights
// beside it. Converted from TFLite without loss:
//
//   input 173 shape=224x224x3 scale=0.0078125 zp=128
//   CONV 1 173 out_shape=112x112x32 out_scale=0.02 out_zp=0 stride=2 pad=SAME act=0 w_shape=32x3x3x3
//        w_scale=0.03 w_zp=122 w_off=0 b_scale=0.0002 b_off=864      (on one line)
//   ADD 95 103,26 out_shape=56x56x24 out_scale=0.43 out_zp=133
//
// Activations are height x width x channels; real = (q - zp) * scale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct QuantisedTensor {
  int64_t height = 0, width = 0, channels = 0;
  double scale = 1;
  int64_t zero = 0;  // the number that stands for 0
};

struct QuantisedOperator {
  enum class Kind { kConvolution, kDepthwise, kAdd, kMeanPool };
  Kind kind = Kind::kConvolution;
  int64_t output = 0;                // its number
  std::vector<int64_t> inputs = {};  // numbers of what it reads
  QuantisedTensor out = {};
  // Convolutions. Weights [outputs][height][width][inputs]; depthwise [1][height][width][channels].
  int64_t stride = 1;
  std::vector<int64_t> weight_shape = {};
  double weight_scale = 1;
  int64_t weight_zero = 0;
  std::vector<uint8_t> weights = {};
  std::vector<int32_t> biases = {};  // real = b * input scale * weight scale
};

struct QuantisedNetwork {
  int64_t input = 0;  // its number
  QuantisedTensor in = {};
  std::vector<QuantisedOperator> operators = {};  // in the order in which they run
};

// Checked: every line, sizes that fit each other and the weights, numbers that were written before they
// are read. RESHAPE and SOFTMAX, which end a classifier, are passed over.
QuantisedNetwork parse_quantised_network(std::string_view text, const std::string& text_path,
                                         std::string_view weights, const std::string& weights_path);
// A folder with one *_quant.txt and its *_quant.bin, gzip or not.
QuantisedNetwork read_quantised_network(const std::string& folder);

// imagenet_labels.txt: number, two blanks, name, on each line.
std::vector<std::string> read_class_names(const std::string& path);

}  // namespace fovea::data
