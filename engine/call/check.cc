#include "engine/call/check.h"

#include <algorithm>
#include <cmath>

#include "engine/call/meaning.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

// A parameter array: floating point, of one of the shapes allowed.
void check_parameter(const View& view, const ArgumentName& name, const Geometry& g) {
  const bool arithmetic =
      view.dtype == DType::kFloat32 || view.dtype == DType::kFloat64 || view.dtype == g.storage;
  FOVEA_CHECK(arithmetic && view.dtype != DType::kInt32 && view.dtype != DType::kBool,
              name + ": " + name_of(view.dtype) + ", expected a floating-point type");
}

// [1] or [H], or [] for nothing.
void check_per_head(const View& view, const ArgumentName& name, const Geometry& g) {
  if (!view) return;
  check_parameter(view, name, g);
  const bool right =
      view.rank == 1 && (view.size[0] == 1 || view.size[0] == static_cast<int64_t>(g.heads));
  FOVEA_CHECK(right, name + ": shape " + shape_of(view) + ", expected [1] or [" + number(g.heads) +
                         "] (heads)");
}

// [n] or [H, n].
void check_weight(const View& view, const ArgumentName& name, int64_t n, const Geometry& g) {
  FOVEA_CHECK(static_cast<bool>(view), name + ": missing");
  check_parameter(view, name, g);
  const bool right =
      (view.rank == 1 && view.size[0] == n) ||
      (view.rank == 2 && view.size[0] == static_cast<int64_t>(g.heads) && view.size[1] == n);
  FOVEA_CHECK(right, name + ": shape " + shape_of(view) + ", expected [" + number(n) + "] or [" +
                         number(g.heads) + ", " + number(n) + "]");
}

void check_same_width(const Geometry& g) {
  FOVEA_CHECK(g.key_width == g.query_width, "key: width " + number(g.key_width) + ", expected " +
                                                number(g.query_width) + " (the query's)");
}

void check_finite_scale(const std::optional<double>& scale) {
  FOVEA_CHECK(!scale || std::isfinite(*scale),
              "score.scale: " + std::to_string(scale.value_or(0)) + ", expected a finite number");
}

template <class Visit>
void for_elements(const View& view, const Visit& visit) {
  const auto size = [&](int d) { return d < view.rank ? view.size[d] : 1; };
  for (int64_t a = 0; a < size(0); ++a)
    for (int64_t b = 0; b < size(1); ++b)
      for (int64_t c = 0; c < size(2); ++c)
        for (int64_t d = 0; d < size(3); ++d) {
          visit(read<double>(view, a, view.rank > 1 ? b : 0, view.rank > 2 ? c : 0,
                             view.rank > 3 ? d : 0));
        }
}

struct ScoreChecks {
  const Geometry& g;

  void operator()(const Dot& s) const {
    check_same_width(g);
    check_finite_scale(s.scale);
  }
  void operator()(const Bilinear& s) const {
    FOVEA_CHECK(static_cast<bool>(s.weight), "score.weight: missing");
    check_parameter(s.weight, "score.weight", g);
    const int r = s.weight.rank;
    const bool right = (r == 2 || (r == 3 && s.weight.size[0] == static_cast<int64_t>(g.heads))) &&
                       s.weight.size[r - 2] == static_cast<int64_t>(g.query_width) &&
                       s.weight.size[r - 1] == static_cast<int64_t>(g.key_width);
    FOVEA_CHECK(right, "score.weight: shape " + shape_of(s.weight) + ", expected [" +
                           number(g.query_width) + ", " + number(g.key_width) +
                           "], heads before it or not");
    check_finite_scale(s.scale);
  }
  void operator()(const Additive& s) const {
    check_same_width(g);
    check_weight(s.weight, "score.weight", static_cast<int64_t>(g.query_width), g);
    FOVEA_CHECK(std::isfinite(s.negative_slope), "score.negative_slope: not finite");
  }
  void operator()(const GatedAdditive& s) const {
    check_same_width(g);
    FOVEA_CHECK(g.query_width % 2 == 0,
                "query: width " + number(g.query_width) + ", expected an even number (two halves)");
    check_weight(s.weight, "score.weight", static_cast<int64_t>(g.query_width / 2), g);
  }
  void operator()(const Kernel& s) const {
    check_same_width(g);
    FOVEA_CHECK(static_cast<bool>(s.bandwidth), "score.bandwidth: missing");
    check_parameter(s.bandwidth, "score.bandwidth", g);
    const View& h = s.bandwidth;
    const bool per_query = h.rank == 3 && h.size[0] == static_cast<int64_t>(g.batches) &&
                           h.size[1] == static_cast<int64_t>(g.heads) &&
                           h.size[2] == static_cast<int64_t>(g.max_queries);
    if (!per_query) check_per_head(h, "score.bandwidth", g);
    for_elements(h, [](double x) {
      FOVEA_CHECK(x > 0 && std::isfinite(x),
                  "score.bandwidth: " + std::to_string(x) + ", expected a positive finite number");
    });
    if (!s.metric) return;
    check_parameter(s.metric, "score.metric", g);
    const int r = s.metric.rank;
    FOVEA_CHECK((r == 1 || r == 2) && s.metric.size[r - 1] == static_cast<int64_t>(g.query_width),
                "score.metric: shape " + shape_of(s.metric) + ", expected [" +
                    number(g.query_width) + "] or [*, " + number(g.query_width) + "]");
  }
  void operator()(const Cosine& s) const {
    check_same_width(g);
    check_per_head(s.beta, "score.beta", g);
  }
  void operator()(const RankOne& s) const {
    FOVEA_CHECK(g.query_width == 1,
                "query: width " + number(g.query_width) + ", expected 1 (rank_one's half score)");
    FOVEA_CHECK(g.key_width == 1,
                "key: width " + number(g.key_width) + ", expected 1 (rank_one's half score)");
    FOVEA_CHECK(std::isfinite(s.negative_slope), "score.negative_slope: not finite");
  }
  void operator()(const Location&) const {
    FOVEA_CHECK(g.query_width >= g.max_keys, "query: width " + number(g.query_width) +
                                                 ", expected " + number(g.max_keys) +
                                                 " (the keys: each query is its row of scores)");
  }
  void operator()(const Constant&) const {}
};

struct ModifierChecks {
  const Geometry& g;

  void operator()(const Bias& m) const {
    FOVEA_CHECK(static_cast<bool>(m.bias), "score.bias: missing");
    check_parameter(m.bias, "score.bias", g);
    broadcast_to(m.bias,
                 {static_cast<int64_t>(g.batches), static_cast<int64_t>(g.heads),
                  static_cast<int64_t>(g.max_queries), static_cast<int64_t>(g.max_keys)},
                 "score.bias");
  }
  void operator()(const EdgeBias& m) const {
    const int64_t edges = g.graph->columns.size[0];  // that there is a graph has been checked
    FOVEA_CHECK(static_cast<bool>(m.bias) || edges == 0, "score.bias: missing");
    check_parameter(m.bias, "score.bias", g);
    const int r = m.bias.rank;
    const bool right = (r == 1 || (r == 2 && m.bias.size[1] == static_cast<int64_t>(g.heads))) &&
                       m.bias.size[0] == edges;
    FOVEA_CHECK(right, "score.bias: shape " + shape_of(m.bias) + ", expected [" + number(edges) +
                           "] or [" + number(edges) + ", " + number(g.heads) +
                           "], one for each edge, or for each edge and head");
  }
  void operator()(const Alibi& m) const {
    FOVEA_CHECK(static_cast<bool>(m.slopes), "score.slopes: missing");
    check_parameter(m.slopes, "score.slopes", g);
    check_rank(m.slopes, "score.slopes", 1);
    check_size(m.slopes, "score.slopes", 0, static_cast<int64_t>(g.heads), "the heads");
  }
  void operator()(const Relative& m) const {
    FOVEA_CHECK(m.clip >= 0, "score.clip: " + number(m.clip) + ", expected at least 0");
    FOVEA_CHECK(m.clip <= INT32_MAX, "score.clip: " + number(m.clip) + ", expected at most " +
                                         number(INT32_MAX) + " (positions have 32 bits)");
    const auto table = [&](const View& view, const ArgumentName& name, size_t width) {
      if (!view) return;
      check_parameter(view, name, g);
      check_rank(view, name, 2);
      check_size(view, name, 0, 2 * m.clip + 1, "2 clip + 1");
      check_size(view, name, 1, static_cast<int64_t>(width), "the width");
    };
    table(m.key_table, "score.key_table", g.query_width);
    table(m.value_table, "score.value_table", g.value_width);
  }
  void operator()(const SoftCap& m) const {
    FOVEA_CHECK(m.cap > 0 && std::isfinite(m.cap),
                "score.cap: " + std::to_string(m.cap) + ", expected a positive finite number");
  }
  void operator()(const Custom& m) const {
    const bool f64 = is_double(g.storage);
    FOVEA_CHECK(
        f64 ? m.value_f64 != nullptr : m.value_f32 != nullptr,
        std::string("score.custom: no value function for ") + (f64 ? "float64" : "float32"));
  }
};

struct StructureChecks {
  const Geometry& g;

  void operator()(const Dense&) const {}
  void operator()(const Causal&) const {}
  void operator()(const Ragged&) const {}
  void operator()(const Graph&) const {}
  void operator()(const Paged&) const {}
  void operator()(const Window& s) const {
    FOVEA_CHECK(s.left >= -1,
                "structure.left: " + number(s.left) + ", expected at least -1 (unbounded)");
    FOVEA_CHECK(s.right >= -1,
                "structure.right: " + number(s.right) + ", expected at least -1 (unbounded)");
  }
  void operator()(const Prefix& s) const {
    FOVEA_CHECK(s.length >= 0, "structure.length: " + number(s.length) + ", expected at least 0");
    if (!s.lengths) return;
    check_rank(s.lengths, "structure.lengths", 1);
    check_dtype(s.lengths, "structure.lengths", DType::kInt32);
    check_size(s.lengths, "structure.lengths", 0, static_cast<int64_t>(g.batches), "the batch");
    for (int64_t b = 0; b < s.lengths.size[0]; ++b) {
      const int64_t n = element<int32_t>(s.lengths, b);
      FOVEA_CHECK(n >= 0,
                  "structure.lengths[" + number(b) + "]: " + number(n) + ", expected at least 0");
    }
  }
  void operator()(const Documents& s) const {
    ids(s.query_ids, "structure.query_ids", g.max_queries);
    ids(s.key_ids, "structure.key_ids", g.max_keys);
  }
  void operator()(const Blocks& s) const {
    FOVEA_CHECK(s.size > 0, "structure.size: " + number(s.size) + ", expected at least 1");
    const auto count = [&](size_t n) {
      const auto all = static_cast<int64_t>(n);
      return all / s.size + (all % s.size != 0);  // no sum that a large size could overflow
    };
    mask(s.mask, count(g.max_queries), count(g.max_keys));
  }
  void operator()(const Keep& s) const {
    mask(s.mask, static_cast<int64_t>(g.max_queries), static_cast<int64_t>(g.max_keys));
  }
  void operator()(const Strided& s) const {
    FOVEA_CHECK(s.stride > 0, "structure.stride: " + number(s.stride) + ", expected at least 1");
  }
  void operator()(const First& s) const {
    FOVEA_CHECK(s.count >= 0, "structure.count: " + number(s.count) + ", expected at least 0");
  }
  void operator()(const Fixed& s) const {
    FOVEA_CHECK(s.stride > 0, "structure.stride: " + number(s.stride) + ", expected at least 1");
    FOVEA_CHECK(s.summary >= 0 && s.summary <= s.stride, "structure.summary: " + number(s.summary) +
                                                             ", expected between 0 and " +
                                                             number(s.stride) + " (the stride)");
  }

 private:
  void ids(const View& view, const ArgumentName& name, size_t n) const {
    FOVEA_CHECK(static_cast<bool>(view) || n == 0, name + ": missing");
    check_dtype(view, name, DType::kInt32);
    FOVEA_CHECK(view.rank == 1 || view.rank == 2,
                name + ": rank " + number(view.rank) + ", expected 1 or 2");
    if (view.rank == 2) check_size(view, name, 0, static_cast<int64_t>(g.batches), "the batch");
    check_size(view, name, view.rank - 1, static_cast<int64_t>(n), "the sequence");
  }
  void mask(const View& view, int64_t rows, int64_t columns) const {
    FOVEA_CHECK(static_cast<bool>(view) || rows * columns == 0, "structure.mask: missing");
    check_dtype(view, "structure.mask", DType::kBool);
    broadcast_to(view,
                 {static_cast<int64_t>(g.batches), static_cast<int64_t>(g.heads), rows, columns},
                 "structure.mask");
  }
};

}  // namespace

void refuse_rank(const View& view, const ArgumentName& name, int rank) {
  throw InvalidArgument(name + ": rank " + number(view.rank) + ", expected " + number(rank));
}
void refuse_dtype(const View& view, const ArgumentName& name, DType dtype) {
  throw InvalidArgument(name + ": " + name_of(view.dtype) + ", expected " + name_of(dtype));
}
void refuse_size(const View& view, const ArgumentName& name, int dimension, int64_t size,
                 const char* whose) {
  throw InvalidArgument(name + ": size " + number(view.size[dimension]) + " in dimension " +
                        number(dimension) + ", expected " + number(size) + " (" + whose + ")");
}
void check_rows(const View& view, const ArgumentName& name) {
  for (int d = 0; d < view.rank; ++d) {
    FOVEA_CHECK(view.size[d] >= 0, name + ": size " + number(view.size[d]) + " in dimension " +
                                       number(d) + ", expected at least 0");
  }
  const int last = view.rank - 1;
  const bool nothing = std::any_of(view.size.begin(), view.size.begin() + view.rank,
                                   [](int64_t n) { return n == 0; });
  FOVEA_CHECK(nothing || view.size[last] <= 1 || view.stride[last] == 1,
              name + ": stride " + number(view.stride[last]) +
                  " in its last dimension, expected 1 (contiguous)");
}

void check_score(const Problem& problem, const Geometry& geometry) {
  std::visit(ScoreChecks{geometry}, problem.score.kind);
  for (const Modifier& modifier : problem.score.modifiers)
    std::visit(ModifierChecks{geometry}, modifier);
}

void check_normaliser(const Problem& problem, const Geometry& geometry) {
  if (const auto* softmax = std::get_if<Softmax>(&problem.normaliser))
    check_per_head(softmax->sink, "normaliser.sink", geometry);
  if (const auto* entmax = std::get_if<Entmax>(&problem.normaliser)) {
    check_per_head(entmax->alpha_tensor, "normaliser.alpha_tensor", geometry);
    const double fixed = entmax->alpha;
    if (entmax->alpha_tensor) {
      for_elements(entmax->alpha_tensor, [](double x) {
        FOVEA_CHECK(std::isfinite(x),
                    "normaliser.alpha: " + std::to_string(x) + ", expected a finite number");
      });
    } else {
      FOVEA_CHECK(fixed >= 1 && std::isfinite(fixed), "normaliser.alpha: " + std::to_string(fixed) +
                                                          ", expected a finite number, at least 1");
    }
  }
  if (const auto* top = std::get_if<TopK>(&problem.normaliser)) {
    FOVEA_CHECK(top->k >= 1, "normaliser.k: " + number(top->k) + ", expected at least 1");
  }
}

void check_parts(const Structure& structure) {
  for (const auto& part : structure.all_of) {
    std::visit(
        []<class Kind>(const Kind& kind) {
          if constexpr (choice::HasParts<Kind>) {
            if constexpr (std::is_same_v<Kind, Not>) {
              FOVEA_CHECK(kind.parts.size() == 1,
                          "structure.not: " + number(kind.parts.size()) + " parts, expected 1");
            } else {
              FOVEA_CHECK(!kind.parts.empty(), "structure.any_of: no parts, expected at least 1");
            }
            for (const Structure& inner : kind.parts) check_parts(inner);
          }
        },
        part);
  }
}

void check_structure(const Problem& problem, const Geometry& geometry) {
  choice::each_kind(problem.structure, StructureChecks{geometry});
}

}  // namespace fovea::engine
