// The CPU kernels: libtorch's tensors and threads lent to the engine.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include "engine/call/problem.h"
#include "engine/runtime/scratch.h"
#include "torch/engine_call.h"
#include "torch/operators.h"

namespace fovea::operators {
namespace {

// The query's sizes with another last dimension, or without one.
std::vector<int64_t> sizes_like(const Tensor& query, std::optional<int64_t> last) {
  auto sizes = query.sizes().vec();
  if (last)
    sizes.back() = *last;
  else
    sizes.pop_back();
  return sizes;
}

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

// Results of less are malloc's to keep.
constexpr int64_t kLargeResult = int64_t{256} << 10;

Tensor result_of(at::IntArrayRef sizes, const at::TensorOptions& options) {
  static CachedAllocator* const allocator = new CachedAllocator;  // outlives every tensor
  const auto bytes =
      c10::multiply_integers(sizes) * static_cast<int64_t>(options.dtype().itemsize());
  if (bytes < kLargeResult) return at::empty(sizes, options);
  return at::detail::empty_generic(sizes, allocator, c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   c10::typeMetaToScalarType(options.dtype()), std::nullopt);
}

// Empty, laid out as `like` is where its heads were split off whole rows ([batch, length, heads,
// width] in memory): joining them again is then a view.
Tensor empty_laid_out_as(const Tensor& like, std::vector<int64_t> sizes) {
  if (!heads_inside_rows(like)) return result_of(sizes, like.options());
  std::swap(sizes[1], sizes[2]);
  return result_of(sizes, like.options()).transpose(1, 2);
}

Outputs attend_cpu(const Tensor& query, const Tensor& key, const Tensor& value,
                   c10::string_view choices, at::TensorList arrays,
                   const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
                   bool return_lse, bool /*strict: the engine serves all, fused*/) {
  const Call call = call_of(query, key, value, choices, arrays, key_lengths, dropout_p, seed);
  const auto arithmetic = call.query.options().dtype(arithmetic_type(query));
  Tensor output = empty_laid_out_as(query, sizes_like(query, value.size(-1)));
  Tensor statistics = result_of(sizes_like(query, engine::kStatistics), arithmetic);
  Tensor lse =
      at::empty(return_lse ? sizes_like(query, std::nullopt) : std::vector<int64_t>{0}, arithmetic);
  Tensor empty_rows = at::zeros({}, query.options().dtype(at::kLong));
  engine::Result result{.output = view_of(output),
                        .lse = {},
                        .statistics = view_of(statistics),
                        .empty_rows = empty_rows.mutable_data_ptr<int64_t>()};
  if (return_lse) result.lse = view_of(lse);
  engine::forward(problem_of(call), result, torch_parallel());
  return {output, lse, statistics, empty_rows};
}

// A gradient as its argument is: type and shape.
Tensor like_argument(const Tensor& gradient, const Tensor& argument) {
  return gradient.to(argument.scalar_type()).reshape(argument.sizes());
}

Gradients attend_backward_cpu(const Tensor& d_output, const OptionalTensor& d_lse,
                              const Tensor& query, const Tensor& key, const Tensor& value,
                              at::TensorList arrays, c10::string_view choices,
                              const OptionalTensor& key_lengths, double dropout_p,
                              const OptionalTensor& seed, const Tensor& output,
                              const Tensor& statistics, at::IntArrayRef wanted) {
  const Call call = call_of(query, key, value, choices, arrays, key_lengths, dropout_p, seed);
  const Tensor given = d_output.to(query.scalar_type());
  const Tensor from_output = given.stride(-1) == 1 ? given : given.contiguous();
  const Tensor from_lse = d_lse ? d_lse->to(statistics.scalar_type()).contiguous() : Tensor();
  engine::Gradients gradients;
  gradients.output = view_of(from_output);
  if (from_lse.defined()) gradients.lse = view_of(from_lse);

  const auto place = [&](const Tensor& argument, int64_t n, engine::View* view) {
    if (!wanted[n]) return nothing(argument);
    Tensor gradient = empty_laid_out_as(argument, argument.sizes().vec());
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
    d_arrays[n] =
        d_arrays[n].defined() ? like_argument(d_arrays[n], arrays[n]) : nothing(arrays[n]);
  }
  return {d_query, d_key, d_value, d_arrays};
}

std::tuple<Tensor, Tensor> weights_cpu(const Tensor& query, const Tensor& key,
                                       c10::string_view choices, at::TensorList arrays,
                                       const OptionalTensor& key_lengths,
                                       const OptionalTensor& seed, const OptionalTensor& rows,
                                       const OptionalTensor& heads, int64_t top_k,
                                       bool column_sums) {
  const Call call = weights_call(query, key, choices, arrays, key_lengths, seed);
  const engine::Problem problem = problem_of(call);
  const engine::Geometry geometry = engine::resolve(problem);
  const Selection selection = selection_of(call, rows, heads, top_k, column_sums);
  const auto count = [](const Tensor& chosen, size_t all) {
    return chosen.defined() ? chosen.size(0) : static_cast<int64_t>(all);
  };
  std::vector<int64_t> sizes{static_cast<int64_t>(geometry.batches),
                             count(selection.heads, geometry.heads)};
  if (!column_sums) sizes.push_back(count(selection.rows, geometry.max_queries));
  sizes.push_back(top_k > 0 ? top_k : static_cast<int64_t>(geometry.max_keys));
  Tensor weights = result_of(sizes, query.options().dtype(arithmetic_type(query)));
  Tensor indices =
      at::empty(top_k > 0 ? sizes : std::vector<int64_t>{0}, query.options().dtype(at::kInt));
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
  m.impl("weights", weights_cpu);
  m.impl("attend", attend_cpu);
  m.impl("attend_backward", attend_backward_cpu);
}

}  // namespace fovea::operators
