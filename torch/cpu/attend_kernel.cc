// The CPU kernels: they call the engine on libtorch's tensors, with libtorch's threads.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include <new>
#include <string>
#include <utility>

#include "engine/call/problem.h"
#include "engine/runtime/scratch.h"
#include "torch/engine_call.h"
#include "torch/layout.h"
#include "torch/lists.h"
#include "torch/operators.h"

namespace fovea::operators {
namespace {

// Memory from the engine's cache and back to it: malloc takes large blocks from the system and
// returns them each time, and the first write to each page of a fresh one can cost as much as
// computing what goes there.
class CachedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto* scratch = new engine::Scratch(bytes);
    return {scratch->data(), scratch, drop, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void drop(void* scratch) { delete static_cast<engine::Scratch*>(scratch); }
};

// Smaller results are allocated by malloc.
constexpr int64_t kLargeResult = int64_t{256} << 10;

Tensor result_of(const Layout& layout) {
  static CachedAllocator* const allocator = new CachedAllocator;  // outlives every tensor
  return tensor_of(layout, [](c10::SymIntArrayRef symbolic, at::ScalarType type) -> Tensor {
    const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
    const auto bytes = c10::multiply_integers(sizes) * static_cast<int64_t>(c10::elementSize(type));
    if (bytes < kLargeResult) return at::detail::empty_cpu(sizes, type);
    return at::detail::empty_generic(sizes, allocator, c10::DispatchKeySet(c10::DispatchKey::CPU),
                                     type, std::nullopt);
  });
}

// Asked for by a slip (every weight of a long sequence, a top_k beyond the keys), weights may be more
// than there is memory for.
struct WeightsTooLarge final : std::bad_alloc {
  explicit WeightsTooLarge(c10::SymIntArrayRef sizes)
      : message("weights: " + c10::str(sizes) +
                " do not fit into memory; rows, heads and top_k choose fewer") {}
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
};

std::pair<Tensor, Tensor> results_of(const WeightsLayout& layout) {
  try {
    return {result_of(layout.weights), result_of(layout.indices)};
  } catch (const std::bad_alloc&) {
    throw WeightsTooLarge(layout.weights.sizes);
  }
}

Outputs attend_cpu(const Tensor& query, const Tensor& key, const Tensor& value,
                   c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                   const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
                   bool return_lse, bool /*strict: the engine serves all, fused*/,
                   const OptionalTensor& query_offset, bool check_finite) {
  Call call = call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p, seed,
                      query_offset);
  call.check_finite = check_finite;
  const Tensor output = result_of(output_layout(query, value));
  const Tensor statistics = result_of(statistics_layout(query));
  const Tensor lse = result_of(lse_layout(query, return_lse));
  const Tensor empty_rows = at::detail::empty_cpu({}, at::kLong);  // the engine counts into it
  engine::Result result{.output = view_of(output),
                        .lse = {},
                        .statistics = view_of(statistics),
                        .empty_rows = empty_rows.mutable_data_ptr<int64_t>()};
  if (return_lse) result.lse = view_of(lse);
  engine::forward(problem_of(call), result, torch_parallel());
  return {output, lse, statistics, empty_rows};
}

// An array's gradient as the array was given: the engine knows its arithmetic type and rank only.
Tensor like_argument(const Tensor& gradient, const Tensor& array) {
  return laid_out(gradient.to(array.scalar_type()).reshape(array.sizes()),
                  array_gradient_layout(array));
}

Gradients attend_backward_cpu(const Tensor& d_output, const OptionalTensor& d_lse,
                              const Tensor& query, const Tensor& key, const Tensor& value,
                              at::TensorList arrays, c10::string_view choices,
                              c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                              double dropout_p, const OptionalTensor& seed, const Tensor& output,
                              const Tensor& statistics, at::IntArrayRef wanted,
                              const OptionalTensor& query_offset) {
  const Call call = call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p,
                            seed, query_offset);
  const Tensor given = d_output.to(query.scalar_type());
  const Tensor from_output = given.stride(-1) == 1 ? given : given.contiguous();
  const Tensor from_lse = d_lse ? d_lse->to(statistics.scalar_type()).contiguous() : Tensor();
  engine::Gradients gradients;
  gradients.output = view_of(from_output);
  if (from_lse.defined()) gradients.lse = view_of(from_lse);

  const auto place = [&](const Tensor& argument, int64_t n, engine::View* view) {
    if (!wanted[n]) return result_of(no_gradient_layout(argument));
    Tensor gradient = result_of(operand_gradient_layout(argument));
    *view = view_of(gradient);
    return gradient;
  };
  const Tensor d_query = place(query, 0, &gradients.query), d_key = place(key, 1, &gradients.key),
               d_value = place(value, 2, &gradients.value);
  // The choices again, holding the places for their gradients.
  Choices places = call.choices;
  std::vector<Tensor> d_arrays;
  visit_arrays(places, [&](const char*, Tensor& array) {
    const bool want =
        wanted[3 + static_cast<int64_t>(d_arrays.size())] && array.is_floating_point();
    array = want ? at::empty(array.sizes(), array.options()) : Tensor();
    d_arrays.push_back(array);
  });
  gradients.score = views_of(places.score);
  gradients.normaliser = views_of(places.normaliser);

  engine::Result saved{.output = view_of(output),
                       .lse = {},
                       .statistics = view_of(statistics),
                       .empty_rows = nullptr};
  engine::backward(problem_of(call), saved, gradients, torch_parallel());
  for (size_t n = 0; n < d_arrays.size(); ++n) {
    d_arrays[n] = d_arrays[n].defined() ? like_argument(d_arrays[n], arrays[n])
                                        : result_of(no_gradient_layout(arrays[n]));
  }
  return {d_query, d_key, d_value, d_arrays};
}

std::tuple<Tensor, Tensor> weights_cpu(const Tensor& query, const Tensor& key,
                                       c10::string_view choices, at::TensorList arrays,
                                       c10::SymIntArrayRef numbers,
                                       const OptionalTensor& key_lengths,
                                       const OptionalTensor& seed, const OptionalTensor& rows,
                                       const OptionalTensor& heads, int64_t top_k, bool column_sums,
                                       const OptionalTensor& query_offset, bool check_finite) {
  Call call = weights_call(query, key, choices, arrays, numbers, key_lengths, seed, query_offset);
  call.check_finite = check_finite;
  const engine::Problem problem = problem_of(call);
  const engine::Geometry geometry = engine::resolve(problem);
  const Selection selection = selection_of(call, rows, heads, top_k, column_sums);
  const WeightsExtent extent{
      static_cast<int64_t>(geometry.batches), static_cast<int64_t>(geometry.heads),
      static_cast<int64_t>(geometry.max_queries), static_cast<int64_t>(geometry.max_keys)};
  const WeightsLayout layout = weights_layout(query, extent, rows, heads, top_k, column_sums);
  const auto [weights, indices] = results_of(layout);
  engine::Selection chosen{.rows = {}, .heads = {}, .top_k = top_k, .column_sums = column_sums};
  if (selection.rows.defined()) chosen.rows = view_of(selection.rows);
  if (selection.heads.defined()) chosen.heads = view_of(selection.heads);
  engine::SelectedWeights out{.weights = view_of(weights), .indices = {}};
  if (top_k > 0) out.indices = view_of(indices);
  engine::weights(problem, chosen, out, torch_parallel());
  return {weights, indices};
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, CPU, m) {
  m.impl("weights", with_lists<weights_cpu>());
  m.impl("attend", with_lists<attend_cpu>());
  m.impl("attend_backward", attend_backward_cpu);
}

}  // namespace fovea::operators
