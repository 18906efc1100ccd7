// What every text may use: stored types, a few functions, and what a pair of query and key is.
#pragma once

#include "engine/tiles/random.h"
#include "torch/cuda/texts/arguments.h"

namespace fovea::cuda {

// ---- stored numbers ----

struct BFloat16 {
  unsigned short bits;
};
struct Half {
  unsigned short bits;
};

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BFloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
inline float widen(Half x) {
  float wide;
#ifdef __CUDACC_RTC__
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
#else
  wide = half_to_float(x.bits);
#endif
  return wide;
}

inline void narrow(float x, float& to) { to = x; }
inline void narrow(double x, double& to) { to = x; }
inline void narrow(double x, float& to) { to = static_cast<float>(x); }
inline void narrow(float x, BFloat16& to) {  // to nearest, ties to even; NaN stays NaN
  const unsigned bits = __float_as_uint(x);
  to.bits = static_cast<unsigned short>(x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline void narrow(float x, Half& to) {
#ifdef __CUDACC_RTC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
  to.bits = float_to_half(x);
#endif
}

// ---- numbers of the arithmetic type ----

inline float infinity_of(float) { return __int_as_float(0x7f800000); }
inline double infinity_of(double) { return __longlong_as_double(0x7ff0000000000000LL); }
inline float nan_of(float) { return __int_as_float(0x7fffffff); }
inline double nan_of(double) { return __longlong_as_double(0x7fffffffffffffffLL); }
template <class T>
bool is_finite(T x) {
  return x - x == 0;
}

// A block's memory, of the program's size.
#ifdef __CUDACC_RTC__
#define FOVEA_SHARED(name) extern __shared__ __align__(1024) char name[]
#else
#define FOVEA_SHARED(name) alignas(1024) static char name[fovea::cuda::kSharedBytes]
#endif

// Long functions that a pair of every thread calls stay apart: inlined sixteen times and more, they
// would take most of the time of compilation.
#ifdef __CUDACC_RTC__
#define FOVEA_APART __noinline__
#else
#define FOVEA_APART inline
#endif

// What keeps arrays in registers must be inlined: as arguments of a call they would lie in memory.
#ifdef __CUDACC_RTC__
#define FOVEA_INLINE __forceinline__
#else
#define FOVEA_INLINE inline
#endif

inline float larger(float x, float y) { return fmaxf(x, y); }
inline double larger(double x, double y) { return fmax(x, y); }
inline float magnitude(float x) { return fabsf(x); }
inline double magnitude(double x) { return fabs(x); }
inline int least(int x, int y) { return x < y ? x : y; }
inline int most(int x, int y) { return x > y ? x : y; }
#ifdef __CUDACC_RTC__
// Powers and reciprocals as the device has them: to 2e-7, numbers below 1e-38 are 0.
inline float rough_power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
inline float rough_reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}
#else
inline float rough_power_of_two(float x) { return exp2f(x); }
inline float rough_reciprocal(float x) { return 1 / x; }
#endif
#ifdef FOVEA_FAST  // beside rows of 16 bits as good as exact
inline float exponential(float x) { return rough_power_of_two(1.44269504088896f * x); }
#else
inline float exponential(float x) { return expf(x); }
#endif
inline float hyperbolic_tangent(float x) {
  return 1 - 2 * rough_reciprocal(rough_power_of_two(2.88539008177793f * x) + 1);
}
FOVEA_APART double exponential(double x) { return exp(x); }
inline float logarithm(float x) { return logf(x); }
FOVEA_APART double logarithm(double x) { return log(x); }
FOVEA_APART float logarithm_plus_one(float x) { return log1pf(x); }
FOVEA_APART double logarithm_plus_one(double x) { return log1p(x); }
FOVEA_APART double hyperbolic_tangent(double x) { return tanh(x); }
#if defined(__CUDACC_RTC__) && defined(FOVEA_FAST)
inline float root(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
#else
inline float root(float x) { return sqrtf(x); }
#endif
inline double root(double x) { return sqrt(x); }
#ifdef FOVEA_FAST
inline float reciprocal(float x) { return rough_reciprocal(x); }
#else
inline float reciprocal(float x) { return 1 / x; }
#endif
inline double reciprocal(double x) { return 1 / x; }
FOVEA_APART float sine(float x) { return sinf(x); }
FOVEA_APART double sine(double x) { return sin(x); }
FOVEA_APART float cosine(float x) { return cosf(x); }
FOVEA_APART double cosine(double x) { return cos(x); }
FOVEA_APART float to_the_power(float x, float y) { return powf(x, y); }
FOVEA_APART double to_the_power(double x, double y) { return pow(x, y); }
inline double logistic(double x) { return 1 / (1 + exponential(-x)); }
#ifdef FOVEA_FAST
inline float power_of_two(float x) { return rough_power_of_two(x); }
inline float logistic(float x) {
  return rough_reciprocal(1 + rough_power_of_two(-1.44269504088896f * x));
}
#else
inline float power_of_two(float x) { return exp2f(x); }
inline float logistic(float x) { return 1 / (1 + exponential(-x)); }
#endif
inline double power_of_two(double x) { return exp2(x); }
constexpr double kLog2OfE = 1.44269504088896340735992468100189214;

// ---- where a pair lies ----

// One sequence of a batch.
struct Sequence {
  int batch, queries, keys;    // keys: those within its length
  int first_query, first_key;  // packed: the rows where it starts
  int position;                // of its row 0 among the keys
};

inline Sequence sequence_of(const Arguments& a, int batch) {
  Sequence s{batch, a.queries, a.keys, 0, 0, 0};
  if (a.query_offsets) {
    s.first_query = a.query_offsets[batch];
    s.first_key = a.key_offsets[batch];
    s.queries = a.query_offsets[batch + 1] - s.first_query;
    s.keys = a.key_offsets[batch + 1] - s.first_key;
  }
  if (a.key_lengths) s.keys = least(s.keys, a.key_lengths[batch]);
  if (a.bottom_right)
    s.position = s.keys - s.queries;
  else if (a.query_offset)
    s.position = a.query_offset[batch * a.query_offset_stride];
  return s;
}

struct Place {
  int batch, head, row;  // row: of the query in its sequence
  int i, j;              // positions among the keys
  int ordinal;           // of the key among those its row lists; j where rows list none
  Whole row_index;       // of the query among all rows
  float apart = static_cast<float>(i - j);
};

template <class Number>
const Number& element(const Broadcast& array, Whole batch, Whole head, Whole row, Whole column) {
  return static_cast<const Number*>(array.data)[batch * array.stride[0] + head * array.stride[1] +
                                                row * array.stride[2] + column * array.stride[3]];
}

// Whether a rectangle of pairs may be left out, must be looked at, or is allowed whole.
enum class Cover { kNone, kSome, kAll };
struct Span {
  int batch, head;
  int row, rows;  // the queries' rows
  int i;          // the position of the first
  int key, keys;
};

}  // namespace fovea::cuda
