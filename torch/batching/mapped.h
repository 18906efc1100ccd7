// The arguments of an operator under torch.vmap: which dimension is mapped, and calls for one item
// at a time.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <tuple>
#include <vector>

#include "torch/batching/vmap.h"

namespace fovea::operators {

// A tensor as vmap holds it: with the mapped dimension, if it is mapped.
struct Mapped {
  at::Tensor value;
  std::optional<int64_t> dimension;

  int64_t rank() const { return value.dim() - dimension.has_value(); }
  at::Tensor item(int64_t n) const { return dimension ? value.select(*dimension, n) : value; }
  // The mapped dimension first, of size `count` also where it was not mapped.
  at::Tensor first(int64_t count) const {
    if (dimension) return value.movedim(*dimension, 0);
    auto sizes = value.sizes().vec();
    sizes.insert(sizes.begin(), count);
    return value.unsqueeze(0).expand(sizes);
  }
};

// The level of vmap that a kernel runs at; `Vmap` is one of vmap.h's.
template <class Vmap>
class Level {
 public:
  Level() : id_(Vmap::level()), guard_(Vmap::kKey) {}

  Mapped take(const at::Tensor& given) {
    if (!given.defined()) return {};
    auto [value, dimension] = Vmap::unwrap(given, id_);
    if (dimension) count_ = value.size(*dimension);
    return {value, dimension};
  }
  std::optional<Mapped> take(const std::optional<at::Tensor>& given) {
    return given ? std::optional(take(*given)) : std::nullopt;
  }
  std::vector<Mapped> take(at::TensorList given) {
    std::vector<Mapped> all;
    for (const at::Tensor& x : given) all.push_back(take(x));
    return all;
  }
  // How many items; 0 where nothing was mapped at this level.
  int64_t count() const { return count_; }

  at::Tensor give(const at::Tensor& value, int64_t dimension) const {
    return Vmap::wrap(value, dimension, id_);
  }

  // call(n) for each item, its results stacked: tensors, lists of tensors, tuples of both.
  template <class Call>
  auto for_each_item(const Call& call) const {
    std::vector<decltype(call(int64_t{0}))> items;
    for (int64_t n = 0; n < count_; ++n) items.push_back(call(n));
    return stacked(items);
  }

 private:
  at::Tensor stacked(const std::vector<at::Tensor>& items) const {
    return give(at::stack(items), 0);
  }
  std::vector<at::Tensor> stacked(const std::vector<std::vector<at::Tensor>>& items) const {
    std::vector<at::Tensor> all;
    for (size_t n = 0; n < items[0].size(); ++n) {
      std::vector<at::Tensor> one;
      for (const auto& item : items) one.push_back(item[n]);
      all.push_back(stacked(one));
    }
    return all;
  }
  template <class... Parts>
  std::tuple<Parts...> stacked(const std::vector<std::tuple<Parts...>>& items) const {
    return each_part(items, std::index_sequence_for<Parts...>());
  }
  template <class Tuple, size_t... N>
  Tuple each_part(const std::vector<Tuple>& items, std::index_sequence<N...>) const {
    const auto part = [&]<size_t n>(std::integral_constant<size_t, n>) {
      std::vector<std::tuple_element_t<n, Tuple>> all;
      for (const Tuple& item : items) all.push_back(std::get<n>(item));
      return stacked(all);
    };
    return {part(std::integral_constant<size_t, N>())...};
  }

  int64_t id_, count_ = 0;
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

inline std::vector<at::Tensor> items(const std::vector<Mapped>& all, int64_t n) {
  std::vector<at::Tensor> one;
  for (const Mapped& x : all) one.push_back(x.item(n));
  return one;
}
inline std::optional<at::Tensor> item(const std::optional<Mapped>& x, int64_t n) {
  return x ? std::optional(x->item(n)) : std::nullopt;
}
inline bool is_mapped(const std::optional<Mapped>& x) { return x && x->dimension; }

}  // namespace fovea::operators
