// torch.vmap on the operators: one call with the mapped dimension joined to the heads, if that gives
// the same result; otherwise one call for each item.
#include <torch/library.h>

#include "torch/batching/heads.h"
#include "torch/batching/mapped.h"
#include "torch/lists.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea::operators {
namespace {

std::vector<Tensor> values_of(const std::vector<FoldedArray>& folded) {
  std::vector<Tensor> all;
  for (const FoldedArray& array : folded) all.push_back(array.value);
  return all;
}

Choices parsed(c10::string_view choices, const std::vector<Mapped>& arrays,
               c10::SymIntArrayRef numbers) {
  std::vector<Tensor> any;
  for (const Mapped& array : arrays) any.push_back(array.value);
  return unflatten({choices.data(), choices.size()}, any, numbers);
}

int64_t heads_of(const Mapped& query) {
  return query.dimension ? query.value.movedim(*query.dimension, 0).size(2) : query.value.size(1);
}

// Whether every row of every item saw a key; false where that cannot be known.
bool no_empty_rows(const Tensor& count) {
  const Tensor plain = bare(count);
  const bool traced = plain.is_meta() || plain.key_set().has(c10::DispatchKey::Python);
  return !traced && plain.sum().item<int64_t>() == 0;
}

template <class Vmap>
Outputs attend_batched(const Tensor& query, const Tensor& key, const Tensor& value,
                       c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                       const OptionalTensor& key_lengths, double dropout_p,
                       const OptionalTensor& seed, bool return_lse, bool strict,
                       const OptionalTensor& query_offset, bool check_finite) {
  Level<Vmap> level;
  const Mapped q = level.take(query), k = level.take(key), v = level.take(value);
  const std::vector<Mapped> parameters = level.take(arrays);
  const auto lengths = level.take(key_lengths), start = level.take(seed),
             offset = level.take(query_offset);
  const int64_t count = level.count();
  if (count == 0)
    return attend(query, key, value, choices, arrays, numbers, key_lengths, dropout_p, seed,
                  return_lse, strict, query_offset, check_finite);
  // Random numbers depend on the position of a head, which differs in a joined call.
  const bool foldable = !start && !is_mapped(lengths) && !is_mapped(offset) && q.rank() > 2;
  const auto folded =
      foldable ? fold_arrays(parsed(choices, parameters, numbers), parameters, heads_of(q), count,
                             std::vector<bool>(parameters.size(), false))
               : std::nullopt;
  if (folded) {
    const auto [output, lse, statistics, empty_rows] =
        attend(into_heads(q, count), into_heads(k, count), into_heads(v, count), choices,
               values_of(*folded), numbers, key_lengths, dropout_p, seed, return_lse, strict,
               query_offset, check_finite);
    if (no_empty_rows(empty_rows)) {
      const auto give = [&](const Tensor& x) {
        return x.dim() > 1 ? level.give(out_of_heads(x, count), 1) : x;  // [0]: not requested
      };
      return {give(output), give(lse), give(statistics), empty_rows};
    }
  }
  return level.for_each_item([&](int64_t n) {
    return attend(q.item(n), k.item(n), v.item(n), choices, items(parameters, n), numbers,
                  item(lengths, n), dropout_p, item(start, n), return_lse, strict, item(offset, n),
                  check_finite);
  });
}

template <class Vmap>
Gradients attend_backward_batched(const Tensor& d_output, const OptionalTensor& d_lse,
                                  const Tensor& query, const Tensor& key, const Tensor& value,
                                  at::TensorList arrays, c10::string_view choices,
                                  c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                                  double dropout_p, const OptionalTensor& seed,
                                  const Tensor& output, const Tensor& statistics,
                                  at::IntArrayRef wanted, const OptionalTensor& query_offset) {
  Level<Vmap> level;
  const Mapped g = level.take(d_output), q = level.take(query), k = level.take(key),
               v = level.take(value), out = level.take(output), stats = level.take(statistics);
  const auto g_lse = level.take(d_lse);
  const std::vector<Mapped> parameters = level.take(arrays);
  const auto lengths = level.take(key_lengths), start = level.take(seed),
             offset = level.take(query_offset);
  const int64_t count = level.count();
  if (count == 0)
    return attend_backward(d_output, d_lse, query, key, value, arrays, choices, numbers,
                           key_lengths, dropout_p, seed, output, statistics, wanted, query_offset);
  const bool foldable = !start && !is_mapped(lengths) && !is_mapped(offset) && q.rank() > 2;
  const std::vector<bool> own(wanted.begin() + 3, wanted.end());
  const auto folded = foldable ? fold_arrays(parsed(choices, parameters, numbers), parameters,
                                             heads_of(q), count, own)
                               : std::nullopt;
  if (!folded) {
    return level.for_each_item([&](int64_t n) {
      return attend_backward(g.item(n), item(g_lse, n), q.item(n), k.item(n), v.item(n),
                             items(parameters, n), choices, numbers, item(lengths, n), dropout_p,
                             item(start, n), out.item(n), stats.item(n), wanted, item(offset, n));
    });
  }
  const auto [d_query, d_key, d_value, d_arrays] = attend_backward(
      into_heads(g, count), g_lse ? OptionalTensor(into_heads(*g_lse, count)) : std::nullopt,
      into_heads(q, count), into_heads(k, count), into_heads(v, count), values_of(*folded), choices,
      numbers, key_lengths, dropout_p, seed, into_heads(out, count),
      stats.rank() > 1 ? into_heads(stats, count) : stats.value, wanted, query_offset);
  const auto give = [&](const Tensor& x, size_t n) {
    return wanted[n] ? level.give(out_of_heads(x, count), 1) : x;
  };
  std::vector<Tensor> gradients;
  for (size_t n = 0; n < d_arrays.size(); ++n) {
    gradients.push_back(wanted[3 + n] ? level.give((*folded)[n].gradient(d_arrays[n], count), 0)
                                      : d_arrays[n]);
  }
  return {give(d_query, 0), give(d_key, 1), give(d_value, 2), gradients};
}

template <class Vmap>
std::vector<Tensor> attend_double_backward_batched(
    at::TensorList directions, at::IntArrayRef given, const Tensor& d_output,
    const OptionalTensor& d_lse, const Tensor& query, const Tensor& key, const Tensor& value,
    at::TensorList arrays, c10::string_view choices, c10::SymIntArrayRef numbers,
    const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
    at::IntArrayRef wanted, const OptionalTensor& query_offset) {
  Level<Vmap> level;
  const std::vector<Mapped> along = level.take(directions), parameters = level.take(arrays);
  const Mapped g = level.take(d_output), q = level.take(query), k = level.take(key),
               v = level.take(value);
  const auto g_lse = level.take(d_lse), lengths = level.take(key_lengths), start = level.take(seed),
             offset = level.take(query_offset);
  if (level.count() == 0)
    return attend_double_backward(directions, given, d_output, d_lse, query, key, value, arrays,
                                  choices, numbers, key_lengths, dropout_p, seed, wanted,
                                  query_offset);
  return level.for_each_item([&](int64_t n) {
    return attend_double_backward(items(along, n), given, g.item(n), item(g_lse, n), q.item(n),
                                  k.item(n), v.item(n), items(parameters, n), choices, numbers,
                                  item(lengths, n), dropout_p, item(start, n), wanted,
                                  item(offset, n));
  });
}

template <class Vmap>
std::tuple<Tensor, Tensor> weights_batched(
    const Tensor& query, const Tensor& key, c10::string_view choices, at::TensorList arrays,
    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths, const OptionalTensor& seed,
    const OptionalTensor& rows, const OptionalTensor& heads, int64_t top_k, bool column_sums,
    const OptionalTensor& query_offset, bool check_finite) {
  Level<Vmap> level;
  const Mapped q = level.take(query), k = level.take(key);
  const std::vector<Mapped> parameters = level.take(arrays);
  const auto lengths = level.take(key_lengths), start = level.take(seed), chosen = level.take(rows),
             which = level.take(heads), offset = level.take(query_offset);
  if (level.count() == 0)
    return weights(query, key, choices, arrays, numbers, key_lengths, seed, rows, heads, top_k,
                   column_sums, query_offset, check_finite);
  return level.for_each_item([&](int64_t n) {
    return weights(q.item(n), k.item(n), choices, items(parameters, n), numbers, item(lengths, n),
                   item(start, n), item(chosen, n), item(which, n), top_k, column_sums,
                   item(offset, n), check_finite);
  });
}

template <class Vmap>
void register_rules(torch::Library& m) {
  m.impl("attend", with_lists<attend_batched<Vmap>>());
  m.impl("attend_output", output_of_attend);  // or libtorch would call it item by item
  m.impl("attend_backward", attend_backward_batched<Vmap>);
  m.impl("attend_double_backward", attend_double_backward_batched<Vmap>);
  m.impl("weights", with_lists<weights_batched<Vmap>>());
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, FuncTorchBatched, m) { register_rules<FuncVmap>(m); }
TORCH_LIBRARY_IMPL(fovea, Batched, m) { register_rules<GradientsVmap>(m); }

}  // namespace fovea::operators
