// The rows of the score table and of the modifier table.
#include <cmath>

#include "cases/cases.h"
#include "cases/ranges.h"

namespace fovea::cases {
namespace {

using engine::DType;
using engine::View;

int64_t width(const Shape& s) { return s.width; }
int64_t even_width(const Shape& s) { return std::max<int64_t>(2, s.width / 2 * 2); }
int64_t wider(const Shape& s) { return s.width + 1; }
int64_t one(const Shape&) { return 1; }
int64_t keys(const Shape& s) { return std::max<int64_t>(1, s.keys); }

double dot_flops(const Shape& s) { return 2.0 * static_cast<double>(s.width); }
double additive_flops(const Shape& s) { return 3.0 * static_cast<double>(s.width); }
double kernel_flops(const Shape& s) { return 3.0 * static_cast<double>(s.width); }
double metric_flops(const Shape& s) { return 4.0 * static_cast<double>(s.width); }
double few_flops(const Shape&) { return 2; }
double no_flops(const Shape&) { return 0; }

View weight(Storage& storage, const Case& c, std::initializer_list<int64_t> size) {
  const Range range = weight_range(c);
  return storage.floats(engine::arithmetic_of(c.dtype), size, range.low, range.high);
}

// Distances are about 1.2 sqrt(E): some pairs lie within a compact kernel's support, some beyond.
View bandwidth(Storage& storage, const Case& c, const Shape& s,
               std::initializer_list<int64_t> size) {
  const double typical = 1.3 * std::sqrt(static_cast<double>(s.width));
  return storage.floats(engine::arithmetic_of(c.dtype), size, typical, 1.3 * typical);
}

template <choice::KernelName kName>
engine::Score kernel(Storage& storage, const Case& c, const Shape& s) {
  return engine::Kernel{kName, bandwidth(storage, c, s, {1}), {}};
}

View full_bias(Storage& storage, const Case& c, std::initializer_list<int64_t> size) {
  return storage.floats(engine::arithmetic_of(c.dtype), size, is_ratio(c) ? 0.0 : -1.0, 1.0);
}

// A user's function: bent scores, tilted by position.
template <class T>
void bend(const void*, T* scores, size_t n, choice::RowPosition at) {
  for (size_t c = 0; c < n; ++c) {
    const auto offset = static_cast<T>(at.query - at.key - static_cast<int64_t>(c));
    scores[c] += T(0.3) * std::sin(scores[c]) + T(0.01) * offset + T(0.1) * static_cast<T>(at.head);
  }
}
template <class T>
void bend_derivative(const void*, const T* scores, T* gradient, size_t n, choice::RowPosition) {
  for (size_t c = 0; c < n; ++c) gradient[c] *= 1 + T(0.3) * std::cos(scores[c]);
}

View table(Storage& storage, const Case& c, int64_t clip, int64_t columns) {
  return storage.floats(engine::arithmetic_of(c.dtype), {2 * clip + 1, columns},
                        is_ratio(c) ? 0.0 : -1.0, 1.0);
}

}  // namespace

const std::vector<ScoreRow>& scores() {
  using S = Storage;
  using enum choice::KernelName;
  static const std::vector<ScoreRow> rows = {
      {"dot", "dot", [](S&, const Case&, const Shape&) -> engine::Score { return engine::Dot{}; },
       width, width, dot_flops},
      {"dot_scaled", "dot",
       [](S&, const Case&, const Shape&) -> engine::Score { return engine::Dot{.scale = 0.7}; },
       width, width, dot_flops},
      {"bilinear", "bilinear",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Bilinear{weight(m, c, {s.width, wider(s)}), 0.5};
       },
       width, wider, dot_flops},
      {"bilinear_per_head", "bilinear",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Bilinear{weight(m, c, {s.heads, s.width, s.width}), {}};
       },
       width, width, dot_flops},
      {"additive", "additive",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Additive{.weight = weight(m, c, {s.width})};
       },
       width, width, additive_flops},
      {"additive_per_head", "additive",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Additive{.weight = weight(m, c, {s.heads, s.width})};
       },
       width, width, additive_flops},
      {"additive_leaky_relu", "additive",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Additive{.weight = weight(m, c, {s.heads, s.width}),
                                 .activation = choice::Activation::kLeakyRelu};
       },
       width, width, additive_flops},
      {"gated_additive", "gated_additive",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::GatedAdditive{weight(m, c, {even_width(s) / 2})};
       },
       even_width, even_width, additive_flops},
      {"gated_additive_per_head", "gated_additive",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::GatedAdditive{weight(m, c, {s.heads, even_width(s) / 2})};
       },
       even_width, even_width, additive_flops},
      {"kernel_gaussian", "kernel", kernel<kGaussian>, width, width, kernel_flops},
      {"kernel_laplace", "kernel", kernel<kLaplace>, width, width, kernel_flops},
      {"kernel_logistic", "kernel", kernel<kLogistic>, width, width, kernel_flops},
      {"kernel_sigmoid", "kernel", kernel<kSigmoid>, width, width, kernel_flops},
      {"kernel_silverman", "kernel", kernel<kSilverman>, width, width, kernel_flops},
      {"kernel_cauchy", "kernel", kernel<kCauchy>, width, width, kernel_flops},
      {"kernel_box", "kernel", kernel<kBox>, width, width, kernel_flops},
      {"kernel_triangular", "kernel", kernel<kTriangular>, width, width, kernel_flops},
      {"kernel_epanechnikov", "kernel", kernel<kEpanechnikov>, width, width, kernel_flops},
      {"kernel_quartic", "kernel", kernel<kQuartic>, width, width, kernel_flops},
      {"kernel_triweight", "kernel", kernel<kTriweight>, width, width, kernel_flops},
      {"kernel_tricube", "kernel", kernel<kTricube>, width, width, kernel_flops},
      {"kernel_cosine", "kernel", kernel<kCosine>, width, width, kernel_flops},
      {"kernel_gaussian_per_head", "kernel",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Kernel{kGaussian, bandwidth(m, c, s, {s.heads}), {}};
       },
       width, width, kernel_flops},
      {"kernel_epanechnikov_per_query", "kernel",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Kernel{
             kEpanechnikov, bandwidth(m, c, s, {s.batch, s.heads, s.queries}), {}};
       },
       width, width, kernel_flops},
      {"kernel_gaussian_diagonal", "kernel",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         return engine::Kernel{kGaussian, bandwidth(m, c, s, {1}),
                               m.floats(engine::arithmetic_of(c.dtype), {s.width}, 0.5, 1.2)};
       },
       width, width, metric_flops},
      {"kernel_quartic_full", "kernel",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         const double reach = 1.5 / std::sqrt(static_cast<double>(s.width));
         return engine::Kernel{
             kQuartic, bandwidth(m, c, s, {s.heads}),
             m.floats(engine::arithmetic_of(c.dtype), {s.width + 1, s.width}, -reach, reach)};
       },
       width, width, metric_flops},
      {"cosine", "cosine",
       [](S& m, const Case& c, const Shape& s) -> engine::Score {
         const double beta = c.content == Content::kLarge ? 1e4 : 3;
         return engine::Cosine{m.floats(engine::arithmetic_of(c.dtype), {s.heads}, beta / 2, beta)};
       },
       width, width, dot_flops},
      {"cosine_plain", "cosine",
       [](S&, const Case&, const Shape&) -> engine::Score { return engine::Cosine{}; }, width,
       width, dot_flops},
      {"rank_one", "rank_one",
       [](S&, const Case&, const Shape&) -> engine::Score { return engine::RankOne{}; }, one, one,
       few_flops},
      {"location", "location",
       [](S&, const Case&, const Shape&) -> engine::Score { return engine::Location{}; }, keys,
       width, no_flops},
      {"constant", "constant",
       [](S&, const Case&, const Shape&) -> engine::Score { return engine::Constant{}; }, width,
       width, no_flops},
  };
  return rows;
}

const std::vector<ModifierRow>& modifiers() {
  using S = Storage;
  static const std::vector<ModifierRow> rows = {
      {"relative", "relative",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Relative{table(m, c, 2, s.width), table(m, c, 2, s.value_width), 2};
       }},
      {"relative_key", "relative",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Relative{table(m, c, 3, s.width), {}, 3};
       }},
      {"relative_value", "relative",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Relative{{}, table(m, c, 1, s.value_width), 1};
       }},
      {"soft_cap", "soft_cap",
       [](S&, const Case&, const Shape&) -> engine::Modifier { return engine::SoftCap{2.5}; }},
      {"bias", "bias",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {s.batch, s.heads, s.queries, s.keys})};
       }},
      {"bias_pair", "bias",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {s.queries, s.keys})};
       }},
      {"bias_key", "bias",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {s.batch, 1, 1, s.keys})};
       }},
      {"bias_query", "bias",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {s.heads, s.queries, 1})};
       }},
      {"bias_head", "bias",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {1, s.heads, 1, s.keys})};
       }},
      {"bias_all", "bias",
       [](S& m, const Case& c, const Shape&) -> engine::Modifier {
         return engine::Bias{full_bias(m, c, {1})};
       }},
      {"alibi", "alibi",
       [](S& m, const Case& c, const Shape& s) -> engine::Modifier {
         const double most = is_ratio(c) ? 0.002 : 0.5;
         return engine::Alibi{m.floats(engine::arithmetic_of(c.dtype), {s.heads}, most / 10, most)};
       }},
      {"custom", "custom",
       [](S&, const Case&, const Shape&) -> engine::Modifier {
         return engine::Custom{
             bend<float>,
             bend_derivative<float>,
             bend<double>,
             bend_derivative<double>,
             nullptr,
             "score + T(0.3) * sin(score) + T(0.01) * (query - key) + T(0.1) * head",
             "1 + T(0.3) * cos(score)"};
       }},
  };
  return rows;
}

}  // namespace fovea::cases
