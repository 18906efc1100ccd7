// e = beta q.k / (|q| |k|); 0 if one of them is zero. Each row is divided by its length once (and the
// query multiplied by beta); then it is a dot product. Backward of a unit vector y = x / |x|:
// dx = (dy - y (y.dy)) / |x|.
#include <cmath>

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/scores/product_score.h"

namespace fovea::engine {
namespace {

template <class T>
class CosineStage final : public ProductScore<T> {
 public:
  explicit CosineStage(const StageContext& context)
      : ProductScore<T>(context.geometry.query_width, T(1)),
        width_(context.geometry.query_width),
        beta_(std::get<Cosine>(context.problem.score.kind).beta, 0) {
    if (context.gradients) beta_.set_gradient(std::get<Cosine>(context.gradients->score.kind).beta);
  }

  size_t prepared_query_width() const override { return width_; }
  size_t prepared_key_width() const override { return width_; }
  void prepare_query(size_t, size_t head, size_t, size_t n, const T* in, size_t in_stride,
                     T* out) const override {
    for (size_t i = 0; i < n; ++i)
      scaled(in + i * in_stride, beta(head) * inverse_norm(in + i * in_stride), out + i * width_);
  }
  void prepare_key(size_t, size_t, size_t, size_t n, const T* in, size_t in_stride,
                   T* out) const override {
    for (size_t j = 0; j < n; ++j)
      scaled(in + j * in_stride, inverse_norm(in + j * in_stride), out + j * width_);
  }
  void unprepare_query(size_t, size_t head, size_t, size_t n, const T* in, size_t in_stride,
                       const T* d_prepared, T* d_in, size_t d_in_stride,
                       T* partial) const override {
    for (size_t i = 0; i < n; ++i) {
      const T along = unprepare_row(in + i * in_stride, d_prepared + i * width_, beta(head),
                                    d_in + i * d_in_stride);
      if (partial) *partial += along;
    }
  }
  void unprepare_key(size_t, size_t, size_t, size_t n, const T* in, size_t in_stride,
                     const T* d_prepared, T* d_in, size_t d_in_stride, T*) const override {
    for (size_t j = 0; j < n; ++j)
      unprepare_row(in + j * in_stride, d_prepared + j * width_, T(1), d_in + j * d_in_stride);
  }
  size_t partial_size() const override { return beta_.wants_gradient() ? 1 : 0; }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    beta_.add_to_gradient(head, partial);
  }

 private:
  T beta(size_t head) const { return beta_ ? *beta_.of(head) : T(1); }
  // In double: squares of large or small entries neither overflow nor vanish in float.
  T inverse_norm(const T* x) const {
    double sum = 0;
    for (size_t e = 0; e < width_; ++e) sum += static_cast<double>(x[e]) * x[e];
    return sum == 0 ? T(0) : static_cast<T>(1 / std::sqrt(sum));
  }
  void scaled(const T* x, T factor, T* out) const {
    for (size_t e = 0; e < width_; ++e) out[e] = factor * x[e];
  }
  // d_in from the gradient at factor * x / |x|; returns y.d_prepared with y = x / |x|.
  T unprepare_row(const T* x, const T* d_prepared, T factor, T* d_in) const {
    const T inverse = inverse_norm(x);
    T along = 0;
    for (size_t e = 0; e < width_; ++e)
      if (d_prepared[e] != 0) along += inverse * x[e] * d_prepared[e];
    for (size_t e = 0; e < width_; ++e) {
      // A row that is in no pair has no gradient, even if it contains NaN.
      const T d = along == 0 ? d_prepared[e] : d_prepared[e] - along * inverse * x[e];
      d_in[e] = d == 0 ? T(0) : factor * inverse * d;
    }
    return along;
  }

  const size_t width_;
  Parameter<T> beta_;
};

}  // namespace

template <class T>
ScorePointer<T> make_cosine(const StageContext& context) {
  return std::make_unique<CosineStage<T>>(context);
}
template ScorePointer<float> make_cosine<float>(const StageContext&);
template ScorePointer<double> make_cosine<double>(const StageContext&);

}  // namespace fovea::engine
