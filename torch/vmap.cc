// torch.vmap on the operators: one call for each item of the mapped dimension, and a warning that
// says what is faster.
#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <torch/library.h>

namespace fovea::operators {
namespace {

using at::Tensor;

// An argument's value for item `item` of the mapped dimension; its size goes to `count`. Tensors
// and lists of them are mapped.
struct Mapped {
  int64_t level;
  int64_t count = -1;

  Tensor tensor(const Tensor& given, int64_t item) {
    if (!given.defined()) return given;
    auto [value, dimension] = at::functorch::unwrapTensorAtLevel(given, level);
    if (!dimension) return value;
    count = value.size(*dimension);
    return item < 0 ? value : value.select(*dimension, item);
  }
  c10::IValue argument(const c10::IValue& given, int64_t item) {
    if (given.isTensor()) return tensor(given.toTensor(), item);
    if (!given.isTensorList()) return given;
    c10::List<Tensor> items;
    for (const Tensor& part : given.toTensorVector()) items.push_back(tensor(part, item));
    return items;
  }
};

c10::IValue stacked(const std::vector<c10::IValue>& items, int64_t level) {
  if (items[0].isTensor()) {
    std::vector<Tensor> tensors;
    for (const auto& item : items) tensors.push_back(item.toTensor());
    return at::functorch::makeBatched(at::stack(tensors), 0, level);
  }
  c10::List<Tensor> lists;
  for (size_t n = 0; n < items[0].toTensorVector().size(); ++n) {
    std::vector<c10::IValue> parts;
    for (const auto& item : items) parts.push_back(item.toTensorVector()[n]);
    lists.push_back(stacked(parts, level).toTensor());
  }
  return lists;
}

void one_call_an_item(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_WARN_ONCE(op.schema().name(),
                  ": no batching rule, so vmap makes one call for each item; put the mapped "
                  "dimension into the batch "
                  "dimension of query, key and value instead, which is faster");
  const int64_t level = at::functorch::maybeCurrentDynamicLayer()->layerId();
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const size_t inputs = op.schema().arguments().size();
  const std::vector<c10::IValue> arguments = torch::jit::last(*stack, inputs).vec();
  torch::jit::drop(*stack, inputs);

  Mapped mapped{level};
  for (const auto& argument : arguments) mapped.argument(argument, -1);
  TORCH_CHECK(mapped.count > 0, op.schema().name(), ": vmap over a dimension of size ",
              mapped.count, ", expected at least 1");
  std::vector<std::vector<c10::IValue>> results(op.schema().returns().size());
  for (int64_t item = 0; item < mapped.count; ++item) {
    torch::jit::Stack one;
    for (const auto& argument : arguments) one.push_back(mapped.argument(argument, item));
    op.callBoxed(&one);
    for (size_t n = 0; n < results.size(); ++n) results[n].push_back(one[n]);
  }
  for (const auto& items : results) stack->push_back(stacked(items, level));
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, FuncTorchBatched, m) {
  for (const char* name : {"attend", "attend_backward", "weights"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&one_call_an_item>());
  }
}

}  // namespace fovea::operators
