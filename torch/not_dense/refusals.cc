// Sparse, quantised, nested and oneDNN's tensors, which no kernel reads: the first of a call is named.
// Without these registrations libtorch says only that the operator does not run for a backend.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea {
namespace {

// What a tensor that is not dense is, and what makes a dense one of it.
std::string what_it_is(const std::string& name, const at::Tensor& x) {
  if (x.is_nested())
    return "a nested tensor, expected a dense one; the structure ragged takes packed rows";
  const std::string dense = ", expected a dense one; " + name;
  if (x.is_quantized())
    return std::string("a quantised tensor of ") + c10::toString(x.scalar_type()) + dense +
           ".dequantize() makes one";
  if (x.is_mkldnn()) return "a tensor in oneDNN's layout" + dense + ".to_dense() makes one";
  return "a sparse tensor" + dense + ".to_dense() makes one";
}

}  // namespace

void check_dense(const char* name, const at::Tensor& x) {
  if (!x.defined()) return;
  const bool dense = x.layout() == at::kStrided && !x.is_quantized() && !x.is_nested();
  if (!dense) throw InvalidArgument(std::string(name) + ": " + what_it_is(name, x));
}

namespace operators {
namespace {

// The arrays of choices by the names of their fields.
void refuse_arrays(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> given,
                   const std::vector<Tensor>& arrays) {
  const auto argument = [&](const char* name) {
    return given[static_cast<size_t>(*schema.argumentIndexWithName(name))];
  };
  const c10::IValue numbers = argument("numbers");
  Choices choices =
      unflatten(argument("choices").toStringRef(), arrays,
                numbers.isNone() ? std::vector<c10::SymInt>() : numbers.toSymIntVector());
  visit_arrays(choices, [](const char* name, Tensor& array) { check_dense(name, array); });
}

void refuse_not_dense(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  const auto given = torch::jit::last(*stack, count);
  for (size_t n = 0; n < count; ++n) {
    const std::string& name = schema.arguments()[n].name();
    if (given[n].isTensor()) check_dense(name.c_str(), given[n].toTensor());
    if (!given[n].isList()) continue;
    std::vector<Tensor> tensors;
    for (const c10::IValue& one : given[n].toListRef())
      if (one.isTensor() && one.toTensor().defined()) tensors.push_back(one.toTensor());
    if (name == "arrays")
      refuse_arrays(schema, given, tensors);
    else
      for (const Tensor& one : tensors) check_dense(name.c_str(), one);
  }
  TORCH_INTERNAL_ASSERT(false, schema.name(), ": no argument of it is sparse, quantised or nested");
}

std::vector<torch::Library> refusals() {
  using Key = c10::DispatchKey;
  std::vector<torch::Library> all;
  for (const Key key :
       {Key::SparseCPU, Key::SparseCsrCPU, Key::QuantizedCPU, Key::MkldnnCPU, Key::NestedTensorCPU,
        Key::SparseCUDA, Key::SparseCsrCUDA, Key::QuantizedCUDA, Key::NestedTensorCUDA}) {
    torch::Library& m = all.emplace_back(torch::Library::IMPL, "fovea", key, __FILE__, __LINE__);
    for (const char* name :
         {"attend", "attend_backward", "attend_double_backward", "weights", "_chain_marginals",
          "_chain_marginals_along", "_tree_marginals", "_tree_marginals_along"})
      m.impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse_not_dense>());
  }
  return all;
}
const std::vector<torch::Library> kRefusals = refusals();

}  // namespace
}  // namespace operators
}  // namespace fovea
