// The engine: attention without libtorch.
//
//   fovea::engine::Problem problem{.query = q, .key = k, .value = v, .score = fovea::engine::Dot{},
//                                  .structure = fovea::engine::Causal{}};
//   fovea::engine::forward(problem, {.output = o}, fovea::engine::default_parallel());
//
// Tensors are views of the caller's memory; the engine allocates only scratch memory. Each thread
// keeps its scratch for its next call, all threads together at most 512 MB. So a call of the same
// shape as the one before allocates nothing and takes no lock. (Exceptions: a call that throws,
// explain_dispatch, `weights` of rows that see NaN, and backward on a graph, which takes a lock to
// find the transposed graph.) No call stores a queries x keys matrix. Results are written while
// inputs are still read. So an array for a result must not overlap an input or another result, and
// its own elements must not overlap (a stride of 0): such views are refused by name. Slices of one
// array that do not overlap are allowed, for example those of [B, L, 3, H, E].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "fovea/choices.h"
#include "fovea/error.h"

namespace fovea::engine {

enum class DType : uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kBool };

// A strided array of up to four dimensions, or nothing (data == nullptr). Strides count elements.
// The engine never writes through a view that is an input.
struct View {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  int rank = 0;
  std::array<int64_t, 4> size{};
  std::array<int64_t, 4> stride{};

  explicit operator bool() const { return data != nullptr; }
  // A contiguous view.
  static View of(void* data, DType dtype, std::initializer_list<int64_t> size);
};

using Dot = choice::Dot<View>;
using Bilinear = choice::Bilinear<View>;
using Additive = choice::Additive<View>;
using GatedAdditive = choice::GatedAdditive<View>;
using Kernel = choice::Kernel<View>;
using Cosine = choice::Cosine<View>;
using RankOne = choice::RankOne<View>;
using Location = choice::Location<View>;
using Constant = choice::Constant<View>;
using Bias = choice::Bias<View>;
using EdgeBias = choice::EdgeBias<View>;
using Alibi = choice::Alibi<View>;
using Relative = choice::Relative<View>;
using SoftCap = choice::SoftCap<View>;
using Custom = choice::Custom<View>;
using Softmax = choice::Softmax<View>;
using KernelRatio = choice::KernelRatio<View>;
using Unnormalised = choice::Unnormalised<View>;
using Uniform = choice::Uniform<View>;
using Sigmoid = choice::Sigmoid<View>;
using Sparsemax = choice::Sparsemax<View>;
using Entmax = choice::Entmax<View>;
using TopK = choice::TopK<View>;
using Hard = choice::Hard<View>;
using Dense = choice::Dense<View>;
using Causal = choice::Causal<View>;
using Window = choice::Window<View>;
using Prefix = choice::Prefix<View>;
using Documents = choice::Documents<View>;
using Blocks = choice::Blocks<View>;
using Keep = choice::Keep<View>;
using Ragged = choice::Ragged<View>;
using Graph = choice::Graph<View>;
using Strided = choice::Strided<View>;
using Fixed = choice::Fixed<View>;
using First = choice::First<View>;
using Paged = choice::Paged<View>;
using AnyOf = choice::AnyOf<View>;
using Not = choice::Not<View>;
using Score = choice::Score<View>;
using Modifier = choice::Modifier<View>;
using Normaliser = choice::Normaliser<View>;
using Structure = choice::Structure<View>;
using PerItem = choice::PerItem<View>;

// query [B, H, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev], H a multiple of Hkv; with Ragged
// or Graph, (total, H, E); with Paged, key and value [pages, page_size, Hkv, E]. All three have the
// same type: float32, float64, bfloat16 or float16. Their last dimension is contiguous.
struct Problem {
  View query{}, key{}, value{};
  Score score{};
  Normaliser normaliser{};
  Structure structure{};
  View key_lengths{};    // int32 [B], or nothing: item b sees keys j < key_lengths[b] only
  double dropout_p = 0;  // probability of dropping a weight; kept ones are scaled by 1 / (1 - p)
  uint64_t seed = 0;     // seed of dropout and of Hard{sample}
  // The position of query row 0 among the keys: a number, or int32 [B], one for each item. Row r
  // has position r + query_offset for every structure and modifier that depends on positions, and
  // for random numbers. So the last rows of a call, given with all keys, have the same result as in
  // the whole call. A negative offset: the keys start after the first query.
  PerItem query_offset{};
  // False: a query that sees a score of NaN or +infinity has output, lse and gradient NaN, and
  // changes no other query. True: forward and weights then throw InvalidArgument naming the first
  // such batch item, head and row. They throw after results are written, before empty_rows is.
  bool check_finite = false;
};

// Arithmetic and saved statistics are float32, or float64 for float64 inputs.
struct Result {
  View output{};  // [B, H, L, Ev], the query's type
  View lse{};     // [B, H, L] or nothing; for Softmax, TopK, Hard (log-probability of its choice)
  View statistics{};              // [B, H, L, kStatistics] or nothing; what backward needs
  int64_t* empty_rows = nullptr;  // receives the number of queries that saw no key
};
inline constexpr int64_t kStatistics = 4;

// A gradient is written where its view is not empty. score and normaliser are of the same kinds as
// the problem's; each array field is the array for that field's gradient (arithmetic type, same
// shape). A choice may be left out if none of its gradients is wanted. If a query has a score of NaN
// or +infinity, its gradient is NaN, and so are those of its keys, its values and the parameters.
struct Gradients {
  View output{}, lse{};  // given: the loss gradient at the outputs; lse may be empty
  View query{}, key{}, value{};
  Score score{};
  Normaliser normaliser{};
};

// How work is run: `run(n, body)` calls body(0) ... body(n - 1), which do not throw, on any threads
// and in any order. Results do not depend on it.
struct Parallel {
  size_t workers = 1;
  std::function<void(size_t n, const std::function<void(size_t)>& body)> run;
};
// The library's thread pool. Its size is that of the affinity mask, or less by the quotas of
// control groups; the variable FOVEA_THREADS sets another. Its threads start at the first call
// that has work for them, sleep between calls, and start again in a child after fork.
const Parallel& default_parallel();

void forward(const Problem&, const Result&, const Parallel&);
// `saved` is what forward wrote (output and statistics).
void backward(const Problem&, const Result& saved, const Gradients&, const Parallel&);

// Which weights to compute; no others are stored.
struct Selection {
  View rows{};               // int32 [R] rows of the query, or nothing for all
  View heads{};              // int32 [Hs], or nothing for all
  int64_t top_k = 0;         // 0: whole rows
  bool column_sums = false;  // sums over the chosen rows instead of rows
};
struct SelectedWeights {
  View weights{};  // [B, Hs, R, S], or [B, Hs, R, top_k] in descending order, or [B, Hs, S] for
                   // column sums
  View indices{};  // int32 [B, Hs, R, top_k]; -1 where a row sees fewer keys
};
// The problem's value is not read, and may be left out.
void weights(const Problem&, const Selection&, const SelectedWeights&, const Parallel&);

// The paths that `forward` and `backward` take, and why each faster path declines; a line for each.
std::string explain_dispatch(const Problem&);

// The SIMD target chosen at run time, for example "AVX3".
const char* simd_target();

}  // namespace fovea::engine
