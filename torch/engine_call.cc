#include "torch/engine_call.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <pthread.h>

#include <atomic>

#include "engine/call/facts.h"
#include "engine/call/problem.h"
#include "torch/array_memo.h"
#include "torch/convert.h"
#include "torch/cuda/cuda_device.h"

namespace fovea {
namespace {

using engine::DType;
using engine::View;

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kHalf:
      return DType::kFloat16;
    case at::kInt:
      return DType::kInt32;
    case at::kBool:
      return DType::kBool;
    default:
      throw InvalidArgument(std::string("type ") + c10::toString(tensor.scalar_type()) +
                            ", expected a floating-point type, int32, int64 or bool");
  }
}

at::Tensor rows_contiguous(const at::Tensor& x) {
  return x.dim() > 0 && x.size(-1) > 1 && x.stride(-1) != 1 ? x.contiguous() : x;
}

at::Tensor to_int32(const char* name, const at::Tensor& array) {
  if (array.scalar_type() == at::kInt) return array.contiguous();
  // Compared as int64: in a narrower type the bounds would wrap, and libtorch compares few unsigned
  // types. An uint64 beyond int64 becomes negative.
  const at::Tensor wide = array.to(at::kLong);
  if (cuda::is_captured(array))  // nothing to look at yet
    return wide.clamp(INT32_MIN, INT32_MAX).to(at::kInt).contiguous();
  const int64_t least = array.scalar_type() == at::kUInt64 ? 0 : INT32_MIN;
  const bool fits = wide.numel() == 0 || ((wide >= least) & (wide <= INT32_MAX)).all().item<bool>();
  if (!fits) throw InvalidArgument(std::string(name) + ": a number beyond 32 bits");
  return wide.to(at::kInt).contiguous();
}

at::Tensor canonical_array(const char* name, const at::Tensor& array, const at::Tensor& query) {
  check_dense(name, array);
  check_device(name, array, query);
  if (array.dim() > 4) {
    throw InvalidArgument(std::string(name) + ": rank " + std::to_string(array.dim()) +
                          ", expected at most 4");
  }
  if (array.scalar_type() == at::kBool) return array;
  if (at::isIntegralType(array.scalar_type(), /*includeBool=*/false)) return to_int32(name, array);
  const auto type = arithmetic_type(query);
  if (array.scalar_type() != query.scalar_type() && array.scalar_type() != type) {
    throw InvalidArgument(std::string(name) + ": " + c10::toString(array.scalar_type()) +
                          ", expected " + c10::toString(query.scalar_type()) + " (the query's)");
  }
  const at::Tensor wide = rows_contiguous(array.to(type));
  return wide.dim() == 0 ? wide.reshape({1}) : wide;
}

// Numbers for each batch item may stay on the host. Checking them there does not wait for the
// device of the query.
at::Tensor canonical_numbers(const char* name, const at::Tensor& numbers, const at::Tensor& query) {
  if (!at::isIntegralType(numbers.scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgument(std::string(name) + ": " + c10::toString(numbers.scalar_type()) +
                          ", expected int32 or int64");
  }
  const at::Tensor list = numbers.dim() == 0 ? numbers.reshape({1}) : numbers;
  return list.device().is_cpu() ? to_int32(name, list) : canonical_array(name, list, query);
}

// Graphs on a device that have passed the checks, with the numbers of rows they were checked for.
ArrayMemo<bool>& checked_graphs() {
  static auto& graphs = *new ArrayMemo<bool>;
  return graphs;
}
std::vector<int64_t> sizes_of(const Call& call) { return {call.query.size(0), call.key.size(0)}; }
bool is_known(const Graph& graph, const Call& call) {
  return checked_graphs().find(arrays_of(graph), sizes_of(call)).has_value();
}

// An array of the same shape on the host, with numbers that pass the checks: lengths and pages of 0,
// parameters of 1.5.
at::Tensor stand_in(const at::Tensor& x) {
  return at::full(x.sizes(), x.is_floating_point() ? 1.5 : 0, x.options().device(at::kCPU));
}

// A child after fork has none of the threads that libgomp keeps, and its next parallel region would
// wait for them for ever (GCC's bug 58378), as libtorch's own operators do there.
bool in_forked_child = false;
[[maybe_unused]] const int fork_is_noticed =
    pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; });

View view_or_nothing(const at::Tensor& tensor) {
  return tensor.defined() ? view_of(tensor) : View{};
}

}  // namespace

void check_device(const char* name, const at::Tensor& x, const at::Tensor& query) {
  if (x.device() == query.device()) return;
  throw InvalidArgument(std::string(name) + ": on " + x.device().str() + ", expected " +
                        query.device().str() + " (the query's)");
}

void check_operand(const char* name, const at::Tensor& x, const at::Tensor& query) {
  check_dense(name, x);
  if (x.dim() != 3 && x.dim() != 4) {
    throw InvalidArgument(std::string(name) + ": rank " + std::to_string(x.dim()) +
                          ", expected 4, [batch, heads, length, width], or 3 for packed sequences");
  }
  const auto type = x.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16 && type != at::kHalf) {
    throw InvalidArgument(std::string(name) + ": " + c10::toString(type) +
                          ", expected float32, float64, bfloat16 or float16; " + name +
                          ".to(...) converts it");
  }
  check_device(name, x, query);
}

View view_of(const at::Tensor& tensor) {
  static char nothing = 0;  // an array without elements is still an array
  if (tensor.dim() > 4)
    throw InvalidArgument("rank " + std::to_string(tensor.dim()) + ", expected at most 4");
  View view;
  view.data = tensor.numel() > 0 && !tensor.is_meta() ? tensor.data_ptr() : &nothing;
  view.dtype = dtype_of(tensor);
  view.rank = static_cast<int>(tensor.dim());
  for (int d = 0; d < view.rank; ++d) {
    view.size[d] = tensor.size(d);
    view.stride[d] = tensor.stride(d);
  }
  return view;
}

engine::Score views_of(const Score& score) {
  return convert<View, at::Tensor>(score, view_or_nothing);
}
engine::Normaliser views_of(const Normaliser& normaliser) {
  return convert<View, at::Tensor>(normaliser, view_or_nothing);
}

engine::Problem problem_of(const Call& call) {
  engine::Problem problem;
  problem.query = view_of(call.query);
  problem.key = view_of(call.key);
  problem.value = view_of(call.value);
  problem.score = views_of(call.choices.score);
  problem.normaliser = views_of(call.choices.normaliser);
  problem.structure = convert<View, at::Tensor>(call.choices.structure, view_or_nothing);
  if (call.key_lengths.defined()) problem.key_lengths = view_of(call.key_lengths);
  if (call.query_offset.defined()) problem.query_offset = view_of(call.query_offset);
  problem.dropout_p = call.dropout_p;
  problem.seed = call.seed;
  problem.check_finite = call.check_finite;
  return problem;
}

Call canonical(Call call) {
  for (const auto& [x, name] :
       {std::pair{&call.query, "query"}, {&call.key, "key"}, {&call.value, "value"}}) {
    check_operand(name, *x, call.query);
    *x = rows_contiguous(*x);
  }
  visit_arrays(call.choices, [&](const char* name, at::Tensor& array) {
    array = canonical_array(name, array, call.query);
  });
  for (const auto& [numbers, name] :
       {std::pair{&call.key_lengths, "key_lengths"}, {&call.query_offset, "query_offset"}}) {
    if (numbers->defined()) *numbers = canonical_numbers(name, *numbers, call.query);
  }
  return call;
}

void check_call(const Call& call, bool return_lse) {
  if (return_lse) engine::check_lse<at::Tensor>(call.choices.normaliser);
  if (call.query.device().is_cpu()) {
    engine::resolve(problem_of(call));
    return;
  }
  // Arrays that the checks read are copied to the host, but not while a CUDA graph is recorded, where
  // they hold nothing yet: kernels keep lengths and pages within what there is. Where sequences and
  // edges lie they do not, so those are read, and CUDA refuses it. Of operands, biases and masks only the shapes
  // are checked. A graph is large and seldom changes, so it is read once.
  Call host = call;
  const bool captured = cuda::is_captured(call.query);
  const auto* graph = find_structure<Graph>(call.choices.structure);
  const bool known = graph && is_known(*graph, call);
  const auto bounds = [](std::string_view name) {
    return name.ends_with("offsets") || name == "columns";
  };
  const auto is_read = [&](std::string_view name) {
    return name == "bandwidth" || name == "alpha_tensor" || name == "lengths" || name == "table" ||
           bounds(name);
  };
  visit_arrays(host.choices, [&](const char* name, at::Tensor& x) {
    const bool of_graph = graph && (x.is_same(graph->row_offsets) || x.is_same(graph->columns));
    if (is_read(name) && !(known && of_graph))
      x = captured && !bounds(name) ? stand_in(x) : x.cpu();
  });
  for (at::Tensor* x : {&host.key_lengths, &host.query_offset}) {
    if (x->defined()) *x = captured ? stand_in(*x) : x->cpu();
  }
  engine::Problem problem = problem_of(host);
  for (auto& part : problem.structure.all_of) {
    auto* views = std::get_if<engine::Graph>(&part);
    if (known && views) views->row_offsets.data = views->columns.data = nullptr;
  }
  engine::resolve(problem);
  if (graph && !known) checked_graphs().keep(arrays_of(*graph), sizes_of(call), true);
}

const engine::Parallel& torch_parallel() {
  const auto threads = static_cast<size_t>(at::get_num_threads());
#ifdef INTRA_OP_PARALLEL  // else libtorch has no threads here: at::parallel_for would run it all
  if (!in_forked_child) {
    // Each thread takes one piece at a time, so that uneven pieces (causal rows, ragged batches) are
    // balanced.
    thread_local engine::Parallel parallel{
        .workers = 1, .run = [](size_t n, const std::function<void(size_t)>& body) {
          const auto most = std::min(n, static_cast<size_t>(at::get_num_threads()));
          std::atomic<size_t> next{0};
          at::parallel_for(0, static_cast<int64_t>(most), 1, [&](int64_t, int64_t) {
            for (size_t piece; (piece = next.fetch_add(1)) < n;) body(piece);
          });
        }};
    parallel.workers = threads;
    return parallel;
  }
#endif
  thread_local engine::Parallel parallel;
  parallel.workers = std::min(threads, engine::default_parallel().workers);
  parallel.run = engine::default_parallel().run;
  return parallel;
}

}  // namespace fovea
