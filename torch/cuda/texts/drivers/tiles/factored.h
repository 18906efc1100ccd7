// Sums over features of w (1 - 2 / (1 + u v)) on tiles (tile.h): four features share a reciprocal,
// w1 / a + w2 / b = (w1 b + w2 a) / (a b).
#pragma once

namespace fovea::cuda {

constexpr int kFactorDepth = 32;  // features staged at a time
// Where |x| is no more than kSmall, four factors 1 + u v have a product; where it is no more than
// kModerate, each has a number, and one above kLargest counts as that, within 1e-9 of its tanh.
constexpr T kSmall = 5, kModerate = 40, kLargest = T(1u << 30);

struct alignas(16) Four {
  T x[4];
};
struct Factors {
  Four owner[kFactorDepth / 4][kTile], other[kFactorDepth / 4][kTile];
  Four weights[kFactorDepth / 4];
};
// Rows of neighbouring threads lie side by side.
inline int factor_place(int row) { return row % kPer * kSide + row / kPer; }

// The largest |x| of what this thread stages; one that is no number counts as infinity. kRaw: x itself
// is staged.
template <int kCount, bool kRaw, class Stored>
T stage_factors(const Side<Stored>& side, int first, Four (&to)[kFactorDepth / 4][kTile]) {
  T largest = 0;
  for (int n = threadIdx.x; n < kTile * kFactorDepth / 4; n += kThreads) {
    const int c = n % (kFactorDepth / 4), r = n / (kFactorDepth / 4);
    Four four;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int f = first + 4 * c + k;
      const T x =
          r < side.count && f < kCount ? static_cast<T>(widen(side.data[r * side.row + f])) : T(0);
      const T size = x < 0 ? -x : x;
      largest = size <= kModerate ? larger(largest, size) : infinity_of(T());
      four.x[k] = kRaw ? x : Score::factor(x);
    }
    to[c][factor_place(r)] = four;
  }
  return largest;
}

template <bool kClamped>
void add_factored(const Factors& factors, T (&sums)[kPer][kPer], T& weight_sum) {
#pragma unroll 2
  for (int c = 0; c < kFactorDepth / 4; ++c) {
    Four a[kPer], b[kPer];
    const Four w = factors.weights[c];
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
      a[r] = factors.owner[c][factor_place(group() * kPer + r)];
      b[r] = factors.other[c][factor_place(member() * kPer + r)];
    }
    weight_sum += (w.x[0] + w.x[1]) + (w.x[2] + w.x[3]);
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
#pragma unroll
      for (int n = 0; n < kPer; ++n) {
        T d[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          d[k] = 1 + a[r].x[k] * b[n].x[k];
          if (kClamped) d[k] = d[k] < kLargest ? d[k] : kLargest;
        }
        const T low = w.x[0] * d[1] + w.x[1] * d[0], high = w.x[2] * d[3] + w.x[3] * d[2];
        const T d_low = d[0] * d[1], d_high = d[2] * d[3];
        sums[r][n] += (low * d_high + high * d_low) * rough_reciprocal(d_low * d_high);
      }
    }
  }
}

// The sum itself, from numbers staged raw.
inline void add_steps(const Factors& factors, T (&sums)[kPer][kPer]) {
  for (int c = 0; c < kFactorDepth / 4; ++c) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int r = 0; r < kPer; ++r) {
#pragma unroll
        for (int n = 0; n < kPer; ++n)
          sums[r][n] = Score::step(
              sums[r][n], &factors.owner[c][factor_place(group() * kPer + r)].x[k],
              &factors.other[c][factor_place(member() * kPer + n)].x[k], factors.weights[c].x[k]);
      }
    }
  }
}

// sums[r][n] as sum_features has them.
template <int kCount, class StoredOwner, class StoredOther>
void sum_factored(Tiles& tiles, const Side<StoredOwner>& owner, const Side<StoredOther>& other,
                  const Broadcast& weight, int head, T (&sums)[kPer][kPer]) {
  static_assert(sizeof(Factors) <= sizeof(tiles.stage) + sizeof(tiles.weights));
  Factors& factors = *reinterpret_cast<Factors*>(tiles.stage);
  T shares[kPer][kPer] = {}, weight_sum = 0;
  for (int r = 0; r < kPer; ++r)
    for (int n = 0; n < kPer; ++n) sums[r][n] = 0;
  for (int first = 0; first < kCount; first += kFactorDepth) {
    __syncthreads();
    const T largest = larger(stage_factors<kCount, false>(owner, first, factors.owner),
                             stage_factors<kCount, false>(other, first, factors.other));
    if (threadIdx.x < kFactorDepth) {
      const int f = first + static_cast<int>(threadIdx.x);
      factors.weights[threadIdx.x / 4].x[threadIdx.x % 4] =
          f < kCount ? element<T>(weight, 0, head, 0, f) : T(0);
    }
    if (!__syncthreads_or(largest > kSmall)) {
      add_factored<false>(factors, shares, weight_sum);
    } else if (!__syncthreads_or(largest > kModerate)) {
      add_factored<true>(factors, shares, weight_sum);
    } else {
      stage_factors<kCount, true>(owner, first, factors.owner);
      stage_factors<kCount, true>(other, first, factors.other);
      __syncthreads();
      add_steps(factors, sums);
    }
  }
#pragma unroll
  for (int r = 0; r < kPer; ++r)
#pragma unroll
    for (int n = 0; n < kPer; ++n) sums[r][n] += weight_sum - 2 * shares[r][n];
}

}  // namespace fovea::cuda
