// e = log K(u) or K(u), u = |q - k| / h: the thirteen kernels of Nadaraya-Watson regression.
//
// Written on u^2, so that most need no root: phi(u^2), and slope(u^2) = phi'(u) / u, which is all
// that the gradients need: d e / d q = slope (q - k) / h^2, d e / d h = -slope u^2 / h.
#pragma once

namespace fovea::cuda {

// The names and their order are choice::KernelName's.
enum class KernelName {
  kGaussian,
  kLaplace,
  kLogistic,
  kSigmoid,
  kSilverman,
  kCauchy,
  kBox,
  kTriangular,
  kEpanechnikov,
  kQuartic,
  kTriweight,
  kTricube,
  kCosine,
};

template <KernelName kName, bool kLog>
struct KernelFunction {
  static constexpr T kPi = T(3.14159265358979323846264338327950288),
                     kRoot2 = T(1.41421356237309504880168872420969808);
  static constexpr bool kCompact = kName >= KernelName::kBox;

  // K(u) and K'(u) / u where K has compact support, u <= 1.
  static T inside(T u, T square) {
    const T rest = 1 - square;
    if constexpr (kName == KernelName::kBox) return T(0.5);
    if constexpr (kName == KernelName::kTriangular) return 1 - u;
    if constexpr (kName == KernelName::kEpanechnikov) return T(0.75) * rest;
    if constexpr (kName == KernelName::kQuartic) return T(15) / 16 * rest * rest;
    if constexpr (kName == KernelName::kTriweight) return T(35) / 32 * rest * rest * rest;
    const T cube = 1 - u * square;
    if constexpr (kName == KernelName::kTricube) return T(70) / 81 * cube * cube * cube;
    return kPi / 4 * cosine(kPi * u / 2);
  }
  static T inside_slope(T u, T square) {
    const T rest = 1 - square;
    if constexpr (kName == KernelName::kBox) return 0;
    if constexpr (kName == KernelName::kTriangular) return u > 0 ? -1 / u : T(0);
    if constexpr (kName == KernelName::kEpanechnikov) return T(-1.5);
    if constexpr (kName == KernelName::kQuartic) return T(-15) / 4 * rest;
    if constexpr (kName == KernelName::kTriweight) return T(-105) / 16 * rest * rest;
    const T cube = 1 - u * square;
    if constexpr (kName == KernelName::kTricube) return T(-70) / 9 * u * cube * cube;
    return u > 0 ? -kPi * kPi / 8 * sine(kPi * u / 2) / u : T(0);
  }

  // log K and (log K)' / u of those that are positive everywhere.
  static T log_value(T u, T square) {
    if constexpr (kName == KernelName::kGaussian)
      return square / -2 - T(0.918938533204672741780329736405617640);
    if constexpr (kName == KernelName::kLaplace)
      return -u - T(0.693147180559945309417232121458176568);
    if constexpr (kName == KernelName::kLogistic)
      return -u - 2 * logarithm_plus_one(exponential(-u));
    if constexpr (kName == KernelName::kSigmoid)
      return T(-0.451582705289454864726195229894882144) - u -
             logarithm_plus_one(exponential(-2 * u));
    return -logarithm_plus_one(square) - T(1.14472988584940017414342735135305871);
  }
  static T log_slope(T u, T square) {
    if constexpr (kName == KernelName::kGaussian) return -1;
    if constexpr (kName == KernelName::kCauchy) return -2 / (1 + square);
    if (!(u > 0) && u == 0) {
      // tanh(u) / u at 0; |x| has no slope there: 0.
      if constexpr (kName == KernelName::kLogistic) return T(-0.5);
      return kName == KernelName::kSigmoid ? T(-1) : T(0);
    }
    if constexpr (kName == KernelName::kLaplace) return -1 / u;
    if constexpr (kName == KernelName::kLogistic) return -hyperbolic_tangent(u / 2) / u;
    return -hyperbolic_tangent(u) / u;
  }

  static T value(T square) {
    const T u =
        kName == KernelName::kGaussian || kName == KernelName::kCauchy ? T(0) : root(square);
    if constexpr (kName == KernelName::kSilverman) {
      return exponential(-u / kRoot2) * sine(u / kRoot2 + kPi / 4) / 2;
    } else if constexpr (kCompact) {
      const T k = square > 1 ? T(0) : square == square ? inside(u, square) : square;
      return kLog ? logarithm(k) : k;
    } else {
      const T e = log_value(u, square);
      return kLog ? e : exponential(e);
    }
  }
  static T slope(T square) {
    const T u =
        kName == KernelName::kGaussian || kName == KernelName::kCauchy ? T(0) : root(square);
    if constexpr (kName == KernelName::kSilverman) {
      if (u == 0) return 0;
      const T x = u / kRoot2 + kPi / 4;
      return exponential(-u / kRoot2) * (cosine(x) - sine(x)) / (2 * kRoot2 * u);
    } else if constexpr (kCompact) {
      if (square > 1) return 0;
      if (square != square) return square;
      const T k = inside(u, square);
      if (!kLog) return inside_slope(u, square);
      return k == 0 ? T(0) : inside_slope(u, square) / k;
    } else {
      const T slope = log_slope(u, square);
      return kLog ? slope : slope * exponential(log_value(u, square));
    }
  }
};

// Kernels that are positive everywhere, without their logarithms: K(u) / K(0), at most 1, from
// |q - k|^2 and a number of the query. The gradient of log K by q is `row_slope` s (q - k).
template <KernelName kName>
struct PositiveKernel {
  static constexpr bool kSquares = kName == KernelName::kGaussian || kName == KernelName::kCauchy;
  static T row_number(T inverse) {
    if constexpr (kName == KernelName::kCauchy) return inverse * inverse;
    if constexpr (kName == KernelName::kGaussian) return inverse * inverse * T(-0.5 * kLog2OfE);
    return inverse * T(-kLog2OfE);
  }
  static T row_slope(T inverse) {
    if constexpr (kName == KernelName::kCauchy) return -2 * inverse * inverse;
    return kSquares ? -inverse * inverse : -inverse;
  }
  static T ratio(T square, T number, T& s) {
    if constexpr (kName == KernelName::kGaussian) {
      s = 1;
      return power_of_two(square * number);
    } else if constexpr (kName == KernelName::kCauchy) {
      return s = reciprocal(1 + square * number);
    } else {
      const T distance = root(square), t = power_of_two(distance * number);  // exp(-u)
      s = square > 0 ? reciprocal(distance) : T(0);
      if constexpr (kName == KernelName::kLaplace) return t;
      const T power = kName == KernelName::kLogistic ? t : t * t, rest = reciprocal(1 + power);
      s *= (1 - power) * rest;
      return kName == KernelName::kLogistic ? 4 * t * rest * rest : 2 * t * rest;
    }
  }
};

template <KernelName kName, bool kLog>
struct Kernel : ProductScore {
  static constexpr bool kPositive =
      kLog && (kName < KernelName::kSilverman || kName == KernelName::kCauchy);
  using Positive = PositiveKernel<kName>;
  using Function = KernelFunction<kName, kLog>;
  static constexpr bool kBandwidth = true, kOwn = true;
  static T step(T sum, const T* q, const T* k, T) {
    const T difference = q[0] - k[0];
    return sum + difference * difference;
  }
  // `inverse`: 1 / h.
  static T finish(const Arguments&, T sum, T inverse) {
    return Function::value(sum * inverse * inverse);
  }
  static T slope(const Arguments&, T sum, T inverse, T de) {
    return de * Function::slope(sum * inverse * inverse) * inverse * inverse;
  }
  static T bandwidth_slope(const Arguments&, T sum, T inverse, T de) {
    const T square = sum * inverse * inverse;
    return -de * Function::slope(square) * square * inverse;
  }
  static void query_terms(T g, const T* q, const T* k, T* sums) { sums[0] += g * (q[0] - k[0]); }
  static void key_terms(T g, const T* q, const T* k, T* sums) { sums[0] += g * (k[0] - q[0]); }
};

}  // namespace fovea::cuda
