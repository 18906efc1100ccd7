#include "torch/batching/heads.h"

namespace fovea::operators {
namespace {

constexpr int64_t kHeads = 1;  // of operands

// How many of an array's dimensions follow that of heads; nothing where it never has one.
template <class Kind>
std::optional<int64_t> inside_heads(const Kind&, std::string_view field, int64_t rank) {
  constexpr auto is = []<class... Kinds>(std::type_identity<std::tuple<Kinds...>>) {
    return (std::is_same_v<Kind, Kinds> || ...);
  };
  if constexpr (is(std::type_identity<std::tuple<Bias, Keep, Blocks>>())) return 2;
  if constexpr (is(std::type_identity<std::tuple<Additive, GatedAdditive>>())) return 1;
  if constexpr (is(std::type_identity<std::tuple<Bilinear>>())) return 2;
  if constexpr (is(std::type_identity<std::tuple<Cosine, Alibi, Softmax, Entmax>>())) return 0;
  if constexpr (is(std::type_identity<std::tuple<EdgeBias>>())) {
    if (rank == 2) return 0;  // [edges, H]
  }
  if constexpr (is(std::type_identity<std::tuple<Kernel>>())) {
    if (field == "bandwidth") return rank == 3 ? 1 : 0;  // [B, H, L]
  }
  return std::nullopt;
}

// For each array, in the choices' order.
std::vector<std::optional<int64_t>> inside_heads(Choices& choices,
                                                 const std::vector<Mapped>& arrays) {
  std::vector<std::optional<int64_t>> all;
  const auto visit = [&](auto& kind) {
    kind.fields([&](const char* name, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, at::Tensor>) {
        if (field.defined()) all.push_back(inside_heads(kind, name, arrays[all.size()].rank()));
      }
    });
  };
  std::visit(visit, choices.score.kind);
  for (auto& modifier : choices.score.modifiers) std::visit(visit, modifier);
  std::visit(visit, choices.normaliser);
  choice::each_kind(choices.structure, visit);
  return all;
}

FoldedArray fold(const Mapped& array, int64_t inside, int64_t heads, int64_t count) {
  FoldedArray folded;
  at::Tensor x = array.first(count);  // [V, ..]
  folded.sizes = x.sizes().slice(1).vec();
  while (x.dim() < inside + 2) x = x.unsqueeze(1);
  folded.dimension = x.dim() - inside - 2;  // of the heads, without the mapped dimension
  folded.shared = x.size(folded.dimension + 1) != heads;
  auto sizes = x.sizes().vec();
  sizes[static_cast<size_t>(folded.dimension) + 1] = heads;
  folded.value =
      x.expand(sizes).movedim(0, folded.dimension).flatten(folded.dimension, folded.dimension + 1);
  return folded;
}

}  // namespace

at::Tensor into_heads(const Mapped& x, int64_t count) {
  return x.first(count).movedim(0, kHeads).flatten(kHeads, kHeads + 1);
}

at::Tensor out_of_heads(const at::Tensor& x, int64_t count) {
  return x.unflatten(kHeads, {count, x.size(kHeads) / count});
}

at::Tensor FoldedArray::gradient(const at::Tensor& folded, int64_t count) const {
  const int64_t heads = folded.size(dimension) / count;
  at::Tensor each = folded.unflatten(dimension, {count, heads}).movedim(dimension, 0);
  if (shared) each = each.sum(dimension + 1, /*keepdim=*/true);
  std::vector<int64_t> all = sizes;
  all.insert(all.begin(), count);
  return each.reshape(all);
}

std::optional<std::vector<FoldedArray>> fold_arrays(Choices choices,
                                                    const std::vector<Mapped>& arrays,
                                                    int64_t heads, int64_t count,
                                                    const std::vector<bool>& wanted) {
  // A pool of pages has its heads elsewhere.
  if (find_structure<Paged>(choices.structure)) return std::nullopt;
  const auto inside = inside_heads(choices, arrays);
  std::vector<FoldedArray> all;
  for (size_t n = 0; n < arrays.size(); ++n) {
    const bool own = arrays[n].dimension || wanted[n];
    if (own && !inside[n]) return std::nullopt;
    const auto dimension = inside[n] ? arrays[n].rank() - *inside[n] - 1 : -1;
    const bool has_heads = dimension >= 0 && arrays[n].dimension == std::nullopt &&
                           arrays[n].value.size(dimension) != 1;
    if (own || has_heads)
      all.push_back(fold(arrays[n], *inside[n], heads, count));
    else
      all.push_back({.value = arrays[n].value, .sizes = {}});
  }
  return all;
}

}  // namespace fovea::operators
