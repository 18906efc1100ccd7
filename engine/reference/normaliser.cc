#include "engine/reference/normaliser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/reference/kernel.h"

namespace fovea::reference {
namespace {

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

template <class T>
T dot(const std::vector<T>& x, const std::vector<T>& y) {
  T sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += x[j] * y[j];
  return sum;
}

// exp(e_j) / (sum exp(e) + exp(sink)), and the logarithm of the denominator; -infinity where there
// is no score.
template <class T>
std::vector<T> softmax(const std::vector<T>& e, T sink, T* lse) {
  *lse = kMinusInfinity<T>;
  if (e.empty()) return {};
  T maximum = sink;
  for (T x : e) maximum = std::max(maximum, x);
  T sum = std::exp(sink - maximum);
  std::vector<T> a;
  for (T x : e) a.push_back(std::exp(x - maximum)), sum += a.back();
  for (T& x : a) x /= sum;
  *lse = maximum + std::log(sum);
  return a;
}

// a_j = exp(e_j) / sum, the sum with exp(sink) where there is a sink.
template <class T>
struct SoftmaxNormaliser final : Normaliser<T> {
  SoftmaxNormaliser(const engine::Softmax& softmax) : Normaliser<T>(Parameters<T>(softmax)) {}
  bool has_lse() const override { return true; }
  T sink(const Row<T>& row) const {
    const Tensor<T>& sink = this->parameters_.value[0];
    return sink ? sink.data[sink.broadcast(0, 0, 0, row.head)] : kMinusInfinity<T>;
  }
  void forward(Row<T>& row) const override { row.a = softmax(row.e, sink(row), &row.lse); }
  void backward(Row<T>& row) override {
    const T mean = dot(row.a, row.da);
    for (size_t j = 0; j < row.a.size(); ++j) {
      row.de.push_back(row.a[j] * (row.da[j] - mean + row.d_lse));
    }
    Tensor<T>& d_sink = this->parameters_.gradient[0];
    if (d_sink && !row.e.empty()) {
      d_sink.data[d_sink.broadcast(0, 0, 0, row.head)] +=
          std::exp(sink(row) - row.lse) * (row.d_lse - mean);
    }
  }
};

// a_j = K_j / sum K
template <class T>
struct KernelRatioNormaliser final : Normaliser<T> {
  KernelRatioNormaliser(const engine::KernelRatio& ratio) : Normaliser<T>(Parameters<T>(ratio)) {}
  bool empty(const Row<T>& row) const override {  // no neighbour within a compact kernel's support
    return std::accumulate(row.e.begin(), row.e.end(), T(0)) == 0;
  }
  void forward(Row<T>& row) const override {
    const T sum = std::accumulate(row.e.begin(), row.e.end(), T(0));
    for (T x : row.e) row.a.push_back(sum == 0 ? T(0) : x / sum);
  }
  void backward(Row<T>& row) override {
    const T sum = std::accumulate(row.e.begin(), row.e.end(), T(0));
    const T mean = dot(row.a, row.da);
    for (T da : row.da) row.de.push_back(sum == 0 ? T(0) : (da - mean) / sum);
  }
};

// a_j = e_j
template <class T>
struct UnnormalisedNormaliser final : Normaliser<T> {
  UnnormalisedNormaliser(const engine::Unnormalised& n) : Normaliser<T>(Parameters<T>(n)) {}
  void forward(Row<T>& row) const override { row.a = row.e; }
  void backward(Row<T>& row) override { row.de = row.da; }
};

// a_j = 1 / |N(i)|
template <class T>
struct UniformNormaliser final : Normaliser<T> {
  UniformNormaliser(const engine::Uniform& n) : Normaliser<T>(Parameters<T>(n)) {}
  bool looks() const override { return false; }
  void forward(Row<T>& row) const override {
    row.a.assign(row.e.size(), 1 / static_cast<T>(row.e.size()));
  }
  void backward(Row<T>& row) override { row.de.assign(row.e.size(), T(0)); }
};

// a_j = 1 / (1 + exp(-e_j))
template <class T>
struct SigmoidNormaliser final : Normaliser<T> {
  SigmoidNormaliser(const engine::Sigmoid& n) : Normaliser<T>(Parameters<T>(n)) {}
  void forward(Row<T>& row) const override {
    for (T x : row.e) row.a.push_back(1 / (1 + std::exp(-x)));
  }
  void backward(Row<T>& row) override {
    for (size_t j = 0; j < row.a.size(); ++j) {
      const T d = 1 / (1 + std::exp(-row.e[j])) / (1 + std::exp(row.e[j]));
      row.de.push_back(row.da[j] * d);
    }
  }
};

// Martins & Astudillo 2016: a = max(0, e - tau)
template <class T>
struct SparsemaxNormaliser final : Normaliser<T> {
  SparsemaxNormaliser(const engine::Sparsemax& n) : Normaliser<T>(Parameters<T>(n)) {}
  void forward(Row<T>& row) const override {
    if (row.e.empty()) return;
    std::vector<T> z = row.e;
    std::sort(z.begin(), z.end(), std::greater<>());
    const T maximum = z[0];
    for (T& x : z) x -= maximum;
    T sum = 0, tau = 0;
    for (size_t k = 1; k <= z.size(); ++k) {
      sum += z[k - 1];
      if (1 + static_cast<T>(k) * z[k - 1] > sum) tau = (sum - 1) / static_cast<T>(k);
    }
    for (T x : row.e) row.a.push_back(std::max(T(0), x - maximum - tau));
  }
  void backward(Row<T>& row) override {
    T sum = 0, support = 0;
    for (size_t j = 0; j < row.a.size(); ++j) {
      if (row.a[j] > 0) sum += row.da[j], support += 1;
    }
    for (size_t j = 0; j < row.a.size(); ++j) {
      row.de.push_back(row.a[j] > 0 ? row.da[j] - sum / support : T(0));
    }
  }
};

// Peters et al. 2019, Correia et al. 2019: a = max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)), tau
// by bisection. At alpha = 1 softmax, its limit, which also stands for an alpha below 1.
template <class T>
struct EntmaxNormaliser final : Normaliser<T> {
  T fixed_alpha;
  EntmaxNormaliser(const engine::Entmax& entmax)
      : Normaliser<T>(Parameters<T>(entmax)), fixed_alpha(static_cast<T>(entmax.alpha)) {}
  T alpha(const Row<T>& row) const {
    const Tensor<T>& alpha = this->parameters_.value[0];
    return std::max(T(1), alpha ? alpha.data[alpha.broadcast(0, 0, 0, row.head)] : fixed_alpha);
  }
  void forward(Row<T>& row) const override {
    if (row.e.empty()) return;
    const T alpha_minus_1 = alpha(row) - 1;
    T lse;
    if (alpha_minus_1 == 0) {
      row.a = softmax(row.e, kMinusInfinity<T>, &lse);
      return;
    }
    const T maximum = *std::max_element(row.e.begin(), row.e.end());
    std::vector<T> z;
    for (T x : row.e) z.push_back(alpha_minus_1 * (x - maximum));
    const auto weight = [&](T x, T tau) {
      return x > tau ? std::pow(x - tau, 1 / alpha_minus_1) : T(0);
    };
    // The largest weight is at most 1 and at least 1 / n.
    T low = -1, high = -std::pow(1 / static_cast<T>(z.size()), alpha_minus_1);
    for (int step = 0; step < 2 * std::numeric_limits<T>::digits; ++step) {
      const T middle = (low + high) / 2;
      T sum = 0;
      for (T x : z) sum += weight(x, middle);
      (sum >= 1 ? low : high) = middle;
    }
    T sum = 0;
    for (T x : z) row.a.push_back(weight(x, low)), sum += row.a.back();
    for (T& a : row.a) a /= sum;
  }
  void backward(Row<T>& row) override {
    // With g = a^(2 - alpha) on the support: de = g (da - sum g da / sum g).
    const T alpha_minus_1 = alpha(row) - 1;
    std::vector<T> g;
    T g_sum = 0, entropy = 0, squares = 0;
    for (T a : row.a) {
      g.push_back(a > 0 ? std::pow(a, 1 - alpha_minus_1) : T(0));
      g_sum += g.back();
      entropy -= a > 0 ? a * std::log(a) : T(0);
      squares += a > 0 ? a * std::log(a) * std::log(a) : T(0);
    }
    const T mean = dot(g, row.da) / g_sum;
    T d_alpha = 0;
    for (size_t j = 0; j < row.a.size(); ++j) {
      row.de.push_back(g[j] == 0 ? T(0) : g[j] * (row.da[j] - mean));
      if (g[j] == 0) continue;
      const T skewed = g[j] / g_sum, log = std::log(row.a[j]);
      d_alpha += row.da[j] * (alpha_minus_1 == 0
                                  ? row.a[j] * (squares - log * log) / 2
                                  : (row.a[j] - skewed) / (alpha_minus_1 * alpha_minus_1) -
                                        (row.a[j] * log + skewed * entropy) / alpha_minus_1);
    }
    Tensor<T>& gradient = this->parameters_.gradient[0];
    if (gradient) gradient.data[gradient.broadcast(0, 0, 0, row.head)] += d_alpha;
  }
};

// Softmax over the k largest; ties to the earlier.
template <class T>
struct TopKNormaliser final : Normaliser<T> {
  size_t k;
  TopKNormaliser(const engine::TopK& n)
      : Normaliser<T>(Parameters<T>(n)), k(static_cast<size_t>(n.k)) {}
  bool has_lse() const override { return true; }
  std::vector<size_t> chosen(const Row<T>& row) const {
    std::vector<size_t> order(row.e.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t x, size_t y) { return row.e[x] > row.e[y]; });
    order.resize(std::min(k, order.size()));
    return order;
  }
  void forward(Row<T>& row) const override {
    row.a.assign(row.e.size(), T(0));
    std::vector<T> e;
    for (size_t j : chosen(row)) e.push_back(row.e[j]);
    const std::vector<T> a = softmax(e, kMinusInfinity<T>, &row.lse);
    size_t next = 0;
    for (size_t j : chosen(row)) row.a[j] = a[next++];
  }
  void backward(Row<T>& row) override {
    const T mean = dot(row.a, row.da);
    for (size_t j = 0; j < row.a.size(); ++j) {
      row.de.push_back(row.a[j] * (row.da[j] - mean + row.d_lse));
    }
  }
};

// One key: the largest score, or one drawn from the softmax. lse is the log of the choice's softmax
// probability.
template <class T>
struct HardNormaliser final : Normaliser<T> {
  bool sample;
  HardNormaliser(const engine::Hard& n) : Normaliser<T>(Parameters<T>(n)), sample(n.sample) {}
  bool has_lse() const override { return true; }
  size_t choice(const Row<T>& row) const {
    if (!sample) return std::max_element(row.e.begin(), row.e.end()) - row.e.begin();
    T lse, below = 0;
    const std::vector<T> probability = softmax(row.e, kMinusInfinity<T>, &lse);
    for (size_t j = 0; j + 1 < row.e.size(); ++j) {
      below += probability[j];
      if (row.uniform < below) return j;
    }
    return row.e.size() - 1;
  }
  void forward(Row<T>& row) const override {
    row.a.assign(row.e.size(), T(0));
    softmax(row.e, kMinusInfinity<T>, &row.lse);
    if (row.e.empty()) return;
    const size_t chosen = choice(row);
    row.lse = row.e[chosen] - row.lse;
    row.a[chosen] = 1;
  }
  void backward(Row<T>& row) override {
    T lse;
    const std::vector<T> probability = softmax(row.e, kMinusInfinity<T>, &lse);
    for (size_t j = 0; j < row.e.size(); ++j) {
      row.de.push_back(row.d_lse * (row.a[j] - probability[j]));
    }
  }
};

// A kernel ratio of logarithms is a softmax, without its lse.
template <class T>
struct LogRatioNormaliser final : Normaliser<T> {
  SoftmaxNormaliser<T> softmax{engine::Softmax{}};
  LogRatioNormaliser(const engine::KernelRatio& ratio) : Normaliser<T>(Parameters<T>(ratio)) {}
  void forward(Row<T>& row) const override { softmax.forward(row); }
  void backward(Row<T>& row) override { softmax.backward(row); }
};

template <class T>
struct Make {
  Face face;
  using Made = std::unique_ptr<Normaliser<T>>;
  Made operator()(const engine::Softmax& n) { return std::make_unique<SoftmaxNormaliser<T>>(n); }
  Made operator()(const engine::KernelRatio& n) {
    if (face == Face::kLog) return std::make_unique<LogRatioNormaliser<T>>(n);
    return std::make_unique<KernelRatioNormaliser<T>>(n);
  }
  Made operator()(const engine::Unnormalised& n) {
    return std::make_unique<UnnormalisedNormaliser<T>>(n);
  }
  Made operator()(const engine::Uniform& n) { return std::make_unique<UniformNormaliser<T>>(n); }
  Made operator()(const engine::Sigmoid& n) { return std::make_unique<SigmoidNormaliser<T>>(n); }
  Made operator()(const engine::Sparsemax& n) {
    return std::make_unique<SparsemaxNormaliser<T>>(n);
  }
  Made operator()(const engine::Entmax& n) { return std::make_unique<EntmaxNormaliser<T>>(n); }
  Made operator()(const engine::TopK& n) { return std::make_unique<TopKNormaliser<T>>(n); }
  Made operator()(const engine::Hard& n) { return std::make_unique<HardNormaliser<T>>(n); }
};

}  // namespace

Face face_of(const engine::Problem& problem) {
  if (std::holds_alternative<engine::Unnormalised>(problem.normaliser)) return Face::kValue;
  if (!std::holds_alternative<engine::KernelRatio>(problem.normaliser)) return Face::kLog;
  const auto* kernel = std::get_if<engine::Kernel>(&problem.score.kind);
  const bool positive = kernel && kernel_is_positive(kernel->name);
  return positive && problem.score.modifiers.empty() ? Face::kLog : Face::kValue;
}

template <class T>
std::unique_ptr<Normaliser<T>> make_normaliser(const engine::Problem& problem, Face face) {
  return std::visit(Make<T>{face}, problem.normaliser);
}

template std::unique_ptr<Normaliser<float>> make_normaliser<float>(const engine::Problem&, Face);
template std::unique_ptr<Normaliser<double>> make_normaliser<double>(const engine::Problem&, Face);
template std::unique_ptr<Normaliser<long double>> make_normaliser<long double>(
    const engine::Problem&, Face);

}  // namespace fovea::reference
