#include "engine/reference/modifier.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fovea::reference {
namespace {

// e' = e + bias
template <class T>
struct BiasModifier final : Modifier<T> {
  BiasModifier(const engine::Bias& bias) : Modifier<T>(Parameters<T>(bias)) {}
  int64_t at(const Pair<T>& p) const {
    return this->parameters_.value[0].broadcast(p.batch, p.head, p.row, p.j);
  }
  T value(const Pair<T>& p, T e) const override {
    return e + this->parameters_.value[0].data[at(p)];
  }
  T backward(const Pair<T>& p, T, T de) override {
    this->parameters_.gradient[0].data[at(p)] += de;
    return de;
  }
};

// e' = e + bias of the edge
template <class T>
struct EdgeBiasModifier final : Modifier<T> {
  EdgeBiasModifier(const engine::EdgeBias& bias) : Modifier<T>(Parameters<T>(bias)) {}
  int64_t at(const Pair<T>& p) const {
    const Tensor<T>& bias = this->parameters_.value[0];
    return bias.rank == 1 ? p.edge : p.edge * bias.size[1] + p.head;
  }
  T value(const Pair<T>& p, T e) const override {
    return e + this->parameters_.value[0].data[at(p)];
  }
  T backward(const Pair<T>& p, T, T de) override {
    this->parameters_.gradient[0].data[at(p)] += de;
    return de;
  }
};

// e' = e - slope |i - j|
template <class T>
struct AlibiModifier final : Modifier<T> {
  AlibiModifier(const engine::Alibi& alibi) : Modifier<T>(Parameters<T>(alibi)) {}
  static T distance(const Pair<T>& p) { return static_cast<T>(std::abs(p.i - p.j)); }
  T value(const Pair<T>& p, T e) const override {
    return e - this->parameters_.value[0].data[p.head] * distance(p);
  }
  T backward(const Pair<T>& p, T, T de) override {
    this->parameters_.gradient[0].data[p.head] -= de * distance(p);
    return de;
  }
};

// e' = e + scale q.rK_c; values gain rV_c; c = clip(j - i, -clip, clip)
template <class T>
struct RelativeModifier final : Modifier<T> {
  int64_t clip, width;
  T scale;
  RelativeModifier(const engine::Relative& relative, int64_t width, double scale)
      : Modifier<T>(Parameters<T>(relative)),
        clip(relative.clip),
        width(width),
        scale(static_cast<T>(scale)) {}
  int64_t row(const Pair<T>& p) const { return std::clamp(p.j - p.i, -clip, clip) + clip; }
  T value(const Pair<T>& p, T e) const override {
    const Tensor<T>& table = this->parameters_.value[0];
    if (!table) return e;
    T sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += p.q[c] * table.row(row(p))[c];
    return e + scale * sum;
  }
  T backward(const Pair<T>& p, T, T de) override {
    const Tensor<T>& table = this->parameters_.value[0];
    if (!table) return de;
    for (int64_t c = 0; c < width; ++c) {
      p.dq[c] += de * scale * table.row(row(p))[c];
      this->parameters_.gradient[0].row(row(p))[c] += de * scale * p.q[c];
    }
    return de;
  }
  const T* value_offset(const Pair<T>& p) const override {
    return this->parameters_.value[1] ? this->parameters_.value[1].row(row(p)) : nullptr;
  }
  T* value_offset_gradient(const Pair<T>& p) override {
    return this->parameters_.value[1] ? this->parameters_.gradient[1].row(row(p)) : nullptr;
  }
};

// e' = cap tanh(e / cap)
template <class T>
struct SoftCapModifier final : Modifier<T> {
  T cap;
  SoftCapModifier(const engine::SoftCap& soft_cap)
      : Modifier<T>(Parameters<T>(soft_cap)), cap(static_cast<T>(soft_cap.cap)) {}
  T value(const Pair<T>&, T e) const override { return cap * std::tanh(e / cap); }
  T backward(const Pair<T>&, T e, T de) override {
    const T t = std::tanh(e / cap);
    return de * (1 - t * t);
  }
};

// e' = the user's function, a run of one score at a time
template <class T>
struct CustomModifier final : Modifier<T> {
  engine::Custom custom;
  CustomModifier(const engine::Custom& custom)
      : Modifier<T>(Parameters<T>(custom)), custom(custom) {}
  static choice::RowPosition place(const Pair<T>& p) { return {p.batch, p.head, p.i, p.j}; }
  T value(const Pair<T>& p, T e) const override {
    if constexpr (std::is_same_v<T, float>) {
      custom.value_f32(custom.context, &e, 1, place(p));
    } else {
      auto wide = static_cast<double>(e);
      custom.value_f64(custom.context, &wide, 1, place(p));
      e = wide;
    }
    return e;
  }
  T backward(const Pair<T>& p, T e, T de) override {
    if constexpr (std::is_same_v<T, float>) {
      custom.derivative_f32(custom.context, &e, &de, 1, place(p));
    } else {
      const auto wide = static_cast<double>(e);
      auto d_wide = static_cast<double>(de);
      custom.derivative_f64(custom.context, &wide, &d_wide, 1, place(p));
      de = d_wide;
    }
    return de;
  }
};

template <class T>
struct Make {
  const engine::Problem& problem;
  using Made = std::unique_ptr<Modifier<T>>;
  Made operator()(const engine::Bias& m) { return std::make_unique<BiasModifier<T>>(m); }
  Made operator()(const engine::EdgeBias& m) { return std::make_unique<EdgeBiasModifier<T>>(m); }
  Made operator()(const engine::Alibi& m) { return std::make_unique<AlibiModifier<T>>(m); }
  Made operator()(const engine::Relative& m) {
    const int64_t width = problem.query.size[problem.query.rank - 1];
    const double scale = dot_scale(std::get<engine::Dot>(problem.score.kind), width);
    return std::make_unique<RelativeModifier<T>>(m, width, scale);
  }
  Made operator()(const engine::SoftCap& m) { return std::make_unique<SoftCapModifier<T>>(m); }
  Made operator()(const engine::Custom& m) { return std::make_unique<CustomModifier<T>>(m); }
};

}  // namespace

template <class T>
std::vector<std::unique_ptr<Modifier<T>>> make_modifiers(const engine::Problem& problem) {
  std::vector<std::unique_ptr<Modifier<T>>> made;
  for (const auto& modifier : problem.score.modifiers) {
    made.push_back(std::visit(Make<T>{problem}, modifier));
  }
  return made;
}

template std::vector<std::unique_ptr<Modifier<float>>> make_modifiers<float>(
    const engine::Problem&);
template std::vector<std::unique_ptr<Modifier<double>>> make_modifiers<double>(
    const engine::Problem&);

template std::vector<std::unique_ptr<Modifier<long double>>> make_modifiers<long double>(
    const engine::Problem&);

}  // namespace fovea::reference
