// e = scale q' W k (Luong et al. 2015, "general"). The query is projected once, p = W' q; then it
// is a dot product. Back: dq = W dp, dW = q dp'.
#include <algorithm>

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/scores/product_score.h"

namespace fovea::engine {
namespace {

template <class T>
class BilinearStage final : public ProductScore<T> {
 public:
  explicit BilinearStage(const StageContext& context)
      : ProductScore<T>(context.geometry.key_width,
                        static_cast<T>(choice_of(context).scale.value_or(1))),
        in_width_(context.geometry.query_width),
        out_width_(context.geometry.key_width),
        weight_(choice_of(context).weight, 2) {
    if (context.gradients)
      weight_.set_gradient(std::get<Bilinear>(context.gradients->score.kind).weight);
  }

  size_t prepared_query_width() const override { return out_width_; }
  void prepare_query(size_t, size_t head, size_t, size_t n, const T* in, size_t in_stride,
                     T* out) const override {
    const T* w = weight_.of(head);
    for (size_t i = 0; i < n; ++i) {
      T* p = out + i * out_width_;
      std::fill_n(p, out_width_, T(0));
      for (size_t a = 0; a < in_width_; ++a) {
        const T q = in[i * in_stride + a];
        for (size_t b = 0; b < out_width_; ++b) p[b] += q * w[a * out_width_ + b];
      }
    }
  }
  void unprepare_query(size_t, size_t head, size_t, size_t n, const T* in, size_t in_stride,
                       const T* d_prepared, T* d_in, size_t d_in_stride,
                       T* partial) const override {
    const T* w = weight_.of(head);
    for (size_t i = 0; i < n; ++i) {
      const T* dp = d_prepared + i * out_width_;
      // A row that is in no pair has no gradient, even if it contains NaN.
      const bool met = std::any_of(dp, dp + out_width_, [](T x) { return x != 0; });
      for (size_t a = 0; a < in_width_; ++a) {
        T sum = 0;
        for (size_t b = 0; b < out_width_; ++b) sum += w[a * out_width_ + b] * dp[b];
        d_in[i * d_in_stride + a] = sum;
        if (!partial || !met) continue;
        const T q = in[i * in_stride + a];
        for (size_t b = 0; b < out_width_; ++b) partial[a * out_width_ + b] += q * dp[b];
      }
    }
  }
  size_t partial_size() const override { return weight_.wants_gradient() ? weight_.size() : 0; }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    weight_.add_to_gradient(head, partial);
  }

 private:
  static const Bilinear& choice_of(const StageContext& context) {
    return std::get<Bilinear>(context.problem.score.kind);
  }

  const size_t in_width_, out_width_;
  Parameter<T> weight_;
};

}  // namespace

template <class T>
ScorePointer<T> make_bilinear(const StageContext& context) {
  return std::make_unique<BilinearStage<T>>(context);
}
template ScorePointer<float> make_bilinear<float>(const StageContext&);
template ScorePointer<double> make_bilinear<double>(const StageContext&);

}  // namespace fovea::engine
