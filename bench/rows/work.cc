#include "bench/rows/work.h"

#include <algorithm>

namespace fovea::bench {

double pairs_dense(int64_t queries, int64_t keys) { return 1.0 * queries * keys; }

double pairs_causal(int64_t length) { return 0.5 * length * (length + 1); }

double pairs_window(int64_t length, int64_t left, int64_t right) {
  double pairs = 0;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t first = left < 0 ? 0 : std::max<int64_t>(0, i - left);
    const int64_t last = right < 0 ? length - 1 : std::min(length - 1, i + right);
    pairs += last - first + 1;
  }
  return pairs;
}

double pairs_strided(int64_t length, int64_t stride) {
  double pairs = 0;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t near = std::min(i, stride) + 1;              // distances 0 .. stride
    const int64_t far = std::max<int64_t>(0, i / stride - 1);  // 2 stride, 3 stride, ...
    pairs += near + far;
  }
  return pairs;
}

double pairs_documents(const std::vector<int64_t>& lengths) {
  double pairs = 0;
  for (int64_t length : lengths) pairs += 1.0 * length * length;
  return pairs;
}

double dot_flops(Pass pass, double pairs, int64_t width, int64_t value_width) {
  const double forward = 2.0 * pairs * (width + value_width);
  return pass == Pass::kForward ? forward : forward + 2.0 * pairs * (3 * width + 2 * value_width);
}

double dense_bytes(Pass pass, const Shape& s, int64_t element) {
  const double inputs = s.query_size() + s.key_size() + s.value_size();
  const double forward = inputs + s.output_size();
  const double backward = inputs + 2 * s.output_size() + inputs;
  return element * (pass == Pass::kForward ? forward : forward + backward);
}

Work dot_work(Pass pass, const Shape& shape, double pairs_per_head, int64_t element) {
  const double pairs = pairs_per_head * shape.batch * shape.heads;
  return {.pairs = pairs,
          .flops = dot_flops(pass, pairs, shape.width, shape.value_width),
          .bytes = dense_bytes(pass, shape, element),
          .elements = pairs};
}

}  // namespace fovea::bench
