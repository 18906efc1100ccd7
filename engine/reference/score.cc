#include "engine/reference/score.h"

#include <algorithm>
#include <cmath>

#include "engine/reference/kernel.h"

namespace fovea::reference {
namespace {

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// e = scale q.k
template <class T>
struct DotScore final : Score<T> {
  T scale;
  int64_t width;
  DotScore(const engine::Dot& dot, int64_t width)
      : Score<T>(Parameters<T>(dot)), scale(static_cast<T>(dot_scale(dot, width))), width(width) {}
  T value(const Pair<T>& p) const override {
    T sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += p.q[c] * p.k[c];
    return scale * sum;
  }
  void backward(const Pair<T>& p, T de) override {
    for (int64_t c = 0; c < width; ++c) {
      p.dq[c] += de * scale * p.k[c];
      p.dk[c] += de * scale * p.q[c];
    }
  }
};

// e = scale q' W k
template <class T>
struct BilinearScore final : Score<T> {
  T scale;
  BilinearScore(const engine::Bilinear& bilinear)
      : Score<T>(Parameters<T>(bilinear)), scale(static_cast<T>(bilinear.scale.value_or(1))) {}
  T value(const Pair<T>& p) const override {
    const Tensor<T>& weight = this->parameters_.value[0];
    const int64_t rows = weight.size[weight.rank - 2], columns = weight.size[weight.rank - 1];
    T sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        sum += p.q[r] * weight.data[weight.broadcast(0, p.head, r, c)] * p.k[c];
      }
    }
    return scale * sum;
  }
  void backward(const Pair<T>& p, T de) override {
    const Tensor<T>& weight = this->parameters_.value[0];
    const int64_t rows = weight.size[weight.rank - 2], columns = weight.size[weight.rank - 1];
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = weight.broadcast(0, p.head, r, c);
        p.dq[r] += de * scale * weight.data[at] * p.k[c];
        p.dk[c] += de * scale * p.q[r] * weight.data[at];
        this->parameters_.gradient[0].data[at] += de * scale * p.q[r] * p.k[c];
      }
    }
  }
};

// e = w' f(q + k)
template <class T>
struct AdditiveScore final : Score<T> {
  choice::Activation activation;
  T slope;
  AdditiveScore(const engine::Additive& additive)
      : Score<T>(Parameters<T>(additive)),
        activation(additive.activation),
        slope(static_cast<T>(additive.negative_slope)) {}
  T f(T x) const {
    return activation == choice::Activation::kTanh ? std::tanh(x) : x > 0 ? x : slope * x;
  }
  T derivative(T x) const {
    if (activation == choice::Activation::kTanh) return 1 - std::tanh(x) * std::tanh(x);
    return x > 0 ? T(1) : slope;
  }
  T value(const Pair<T>& p) const override {
    const Tensor<T>& w = this->parameters_.value[0];
    T sum = 0;
    for (int64_t c = 0; c < w.size[w.rank - 1]; ++c) {
      sum += w.data[w.broadcast(0, 0, p.head, c)] * f(p.q[c] + p.k[c]);
    }
    return sum;
  }
  void backward(const Pair<T>& p, T de) override {
    const Tensor<T>& w = this->parameters_.value[0];
    for (int64_t c = 0; c < w.size[w.rank - 1]; ++c) {
      const int64_t at = w.broadcast(0, 0, p.head, c);
      const T inner = p.q[c] + p.k[c];
      const T d_inner = de * w.data[at] * derivative(inner);
      p.dq[c] += d_inner;
      p.dk[c] += d_inner;
      this->parameters_.gradient[0].data[at] += de * f(inner);
    }
  }
};

// e = w' (tanh(a) * sigmoid(b)), [a; b] = q + k
template <class T>
struct GatedAdditiveScore final : Score<T> {
  GatedAdditiveScore(const engine::GatedAdditive& gated) : Score<T>(Parameters<T>(gated)) {}
  T value(const Pair<T>& p) const override {
    const Tensor<T>& w = this->parameters_.value[0];
    const int64_t half = w.size[w.rank - 1];
    T sum = 0;
    for (int64_t c = 0; c < half; ++c) {
      sum += w.data[w.broadcast(0, 0, p.head, c)] * std::tanh(p.q[c] + p.k[c]) *
             sigmoid(p.q[half + c] + p.k[half + c]);
    }
    return sum;
  }
  void backward(const Pair<T>& p, T de) override {
    const Tensor<T>& w = this->parameters_.value[0];
    const int64_t half = w.size[w.rank - 1];
    for (int64_t c = 0; c < half; ++c) {
      const int64_t at = w.broadcast(0, 0, p.head, c);
      const T t = std::tanh(p.q[c] + p.k[c]);
      const T s = sigmoid(p.q[half + c] + p.k[half + c]);
      const T da = de * w.data[at] * (1 - t * t) * s;
      const T db = de * w.data[at] * t * s * (1 - s);
      p.dq[c] += da;
      p.dk[c] += da;
      p.dq[half + c] += db;
      p.dk[half + c] += db;
      this->parameters_.gradient[0].data[at] += de * t * s;
    }
  }
};

// e = log K(u) or K(u), u = |D(q - k)| / h
template <class T>
struct KernelScore final : Score<T> {
  choice::KernelName name;
  Face face;
  int64_t width;
  KernelScore(const engine::Kernel& kernel, Face face, int64_t width)
      : Score<T>(Parameters<T>(kernel)), name(kernel.name), face(face), width(width) {}

  // bandwidth [1], [H] or [B, H, L]
  int64_t bandwidth_at(const Pair<T>& p) const {
    const Tensor<T>& h = this->parameters_.value[0];
    return h.rank == 1 ? h.broadcast(0, 0, 0, p.head) : h.broadcast(0, p.batch, p.head, p.row);
  }
  // D(q - k)
  std::vector<T> stretched(const Pair<T>& p) const {
    const Tensor<T>& metric = this->parameters_.value[1];
    if (metric.rank == 2) {
      std::vector<T> out(metric.size[0], T(0));
      for (int64_t r = 0; r < metric.size[0]; ++r) {
        for (int64_t c = 0; c < width; ++c) out[r] += metric.row(r)[c] * (p.q[c] - p.k[c]);
      }
      return out;
    }
    std::vector<T> out(width);
    for (int64_t c = 0; c < width; ++c) {
      out[c] = (metric ? metric.data[c] : T(1)) * (p.q[c] - p.k[c]);
    }
    return out;
  }
  T distance(const std::vector<T>& difference) const {
    T sum = 0;
    for (T x : difference) sum += x * x;
    return std::sqrt(sum);
  }
  T value(const Pair<T>& p) const override {
    const T u = distance(stretched(p)) / this->parameters_.value[0].data[bandwidth_at(p)];
    return face == Face::kLog ? kernel_log(name, u) : kernel_value(name, u);
  }
  void backward(const Pair<T>& p, T de) override {
    const Tensor<T>& metric = this->parameters_.value[1];
    const std::vector<T> difference = stretched(p);
    const int64_t at = bandwidth_at(p);
    const T h = this->parameters_.value[0].data[at];
    const T r = distance(difference);
    const T u = r / h;
    if (face == Face::kLog && kernel_value(name, u) == 0 && !kernel_is_positive(name)) return;
    const T du =
        de * (face == Face::kLog ? kernel_log_derivative(name, u) : kernel_derivative(name, u));
    this->parameters_.gradient[0].data[at] -= du * u / h;
    if (r == 0) return;  // |x| has no slope at 0: take 0
    for (size_t row = 0; row < difference.size(); ++row) {
      const T d_difference = du * difference[row] / (r * h);
      for (int64_t c = 0; c < width; ++c) {
        if (metric.rank < 2 && c != static_cast<int64_t>(row)) continue;
        const int64_t entry = metric.rank == 2 ? row * width + c : c;
        const T stretch = metric ? metric.data[entry] : T(1);
        p.dq[c] += d_difference * stretch;
        p.dk[c] -= d_difference * stretch;
        if (metric) this->parameters_.gradient[1].data[entry] += d_difference * (p.q[c] - p.k[c]);
      }
    }
  }
};

// e = beta cos(q, k); 0 where either has no direction
template <class T>
struct CosineScore final : Score<T> {
  int64_t width;
  CosineScore(const engine::Cosine& cosine, int64_t width)
      : Score<T>(Parameters<T>(cosine)), width(width) {}
  T dot(const T* a, const T* b) const {
    T sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += a[c] * b[c];
    return sum;
  }
  T beta(const Pair<T>& p) const {
    const Tensor<T>& beta = this->parameters_.value[0];
    return beta ? beta.data[beta.broadcast(0, 0, 0, p.head)] : T(1);
  }
  T cosine(const Pair<T>& p) const {
    const T norms = std::sqrt(dot(p.q, p.q)) * std::sqrt(dot(p.k, p.k));
    return norms == 0 ? T(0) : dot(p.q, p.k) / norms;
  }
  T value(const Pair<T>& p) const override { return beta(p) * cosine(p); }
  void backward(const Pair<T>& p, T de) override {
    Tensor<T>& d_beta = this->parameters_.gradient[0];
    if (d_beta) d_beta.data[d_beta.broadcast(0, 0, 0, p.head)] += de * cosine(p);
    const T q_norm = std::sqrt(dot(p.q, p.q)), k_norm = std::sqrt(dot(p.k, p.k));
    if (q_norm == 0 || k_norm == 0) return;
    const T d_cosine = de * beta(p);
    for (int64_t c = 0; c < width; ++c) {
      const T q = p.q[c] / q_norm, k = p.k[c] / k_norm;
      p.dq[c] += d_cosine * (k - cosine(p) * q) / q_norm;
      p.dk[c] += d_cosine * (q - cosine(p) * k) / k_norm;
    }
  }
};

// e = LeakyReLU(q + k)
template <class T>
struct RankOneScore final : Score<T> {
  T slope;
  RankOneScore(const engine::RankOne& rank_one)
      : Score<T>(Parameters<T>(rank_one)), slope(static_cast<T>(rank_one.negative_slope)) {}
  T value(const Pair<T>& p) const override {
    const T x = p.q[0] + p.k[0];
    return x > 0 ? x : slope * x;
  }
  void backward(const Pair<T>& p, T de) override {
    const T dx = de * (p.q[0] + p.k[0] > 0 ? T(1) : slope);
    p.dq[0] += dx;
    p.dk[0] += dx;
  }
};

// e = q_j
template <class T>
struct LocationScore final : Score<T> {
  LocationScore(const engine::Location& location) : Score<T>(Parameters<T>(location)) {}
  T value(const Pair<T>& p) const override { return p.q[p.j]; }
  void backward(const Pair<T>& p, T de) override { p.dq[p.j] += de; }
};

// e = 1
template <class T>
struct ConstantScore final : Score<T> {
  ConstantScore(const engine::Constant& constant) : Score<T>(Parameters<T>(constant)) {}
  T value(const Pair<T>&) const override { return 1; }
  void backward(const Pair<T>&, T) override {}
};

template <class T>
struct Make {
  int64_t width;
  Face face;
  using Made = std::unique_ptr<Score<T>>;
  Made operator()(const engine::Dot& s) { return std::make_unique<DotScore<T>>(s, width); }
  Made operator()(const engine::Bilinear& s) { return std::make_unique<BilinearScore<T>>(s); }
  Made operator()(const engine::Additive& s) { return std::make_unique<AdditiveScore<T>>(s); }
  Made operator()(const engine::GatedAdditive& s) {
    return std::make_unique<GatedAdditiveScore<T>>(s);
  }
  Made operator()(const engine::Kernel& s) {
    return std::make_unique<KernelScore<T>>(s, face, width);
  }
  Made operator()(const engine::Cosine& s) { return std::make_unique<CosineScore<T>>(s, width); }
  Made operator()(const engine::RankOne& s) { return std::make_unique<RankOneScore<T>>(s); }
  Made operator()(const engine::Location& s) { return std::make_unique<LocationScore<T>>(s); }
  Made operator()(const engine::Constant& s) { return std::make_unique<ConstantScore<T>>(s); }
};

}  // namespace

double dot_scale(const engine::Dot& dot, int64_t width) {
  return dot.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
}

template <class T>
std::unique_ptr<Score<T>> make_score(const engine::Problem& problem, Face face) {
  const int64_t width = problem.query.size[problem.query.rank - 1];
  return std::visit(Make<T>{width, face}, problem.score.kind);
}

template std::unique_ptr<Score<float>> make_score<float>(const engine::Problem&, Face);
template std::unique_ptr<Score<double>> make_score<double>(const engine::Problem&, Face);
template std::unique_ptr<Score<long double>> make_score<long double>(const engine::Problem&, Face);

}  // namespace fovea::reference
