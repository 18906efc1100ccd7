#include "torch/cuda/fill.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>

#include "engine/call/facts.h"
#include "engine/tiles/random.h"
#include "torch/array_memo.h"

namespace fovea::cuda {
namespace {

using at::Tensor;

Whole stride_of(const Tensor& x, int64_t dimension) {
  return x.size(dimension) == 1 ? 0 : x.stride(dimension);
}

// An array that broadcasts to [B, H, L, S], aligned to the right.
Broadcast broadcast_of(const Tensor& x) {
  Broadcast array{x.const_data_ptr(), {}};
  for (int64_t d = 0; d < x.dim(); ++d) array.stride[4 - x.dim() + d] = stride_of(x, d);
  return array;
}
// One number per head, [1] or [H].
Broadcast by_head(const Tensor& x) { return {x.const_data_ptr(), {0, stride_of(x, 0), 0, 0}}; }
// Features of a head, [F] or [H, F].
Broadcast by_feature(const Tensor& x) {
  return {x.const_data_ptr(), {0, x.dim() == 2 ? stride_of(x, 0) : 0, 0, x.stride(-1)}};
}
// A query's bandwidth: [1], [H] or [B, H, L].
Broadcast by_query(const Tensor& x) {
  if (x.dim() == 1) return by_head(x);
  return {x.const_data_ptr(), {stride_of(x, 0), stride_of(x, 1), stride_of(x, 2), 0}};
}

struct Filling {
  Filled& to;
  const Call& call;
  const Program& program;

  // Numbers of items, wherever they lie, as int32 on the query's device.
  const int* integers(const Tensor& x) {
    const auto options = call.query.options().dtype(at::kInt).requires_grad(false);
    // A number of the host is written by a kernel: copied it could not be recorded into a graph.
    const bool single = x.numel() == 1 && x.device().is_cpu() && !call.query.device().is_cpu();
    to.held.push_back(single ? at::full({1}, x.item<int>(), options)
                             : x.to(options, /*non_blocking=*/true).contiguous());
    return to.held.back().const_data_ptr<int>();
  }

  // The smallest and largest id of every tile of rows. Made once for an array, on a stream that then
  // uses it.
  void bound_tiles(const Tensor& ids, int which, Part& part) {
    static auto& memo = *new ArrayMemo<std::array<Tensor, 2>>;
    const int64_t count = ids.size(-1), tiles = (count + program.tile - 1) / program.tile;
    if (count == 0) return;
    const std::vector<int64_t> numbers{program.tile, stream_of(ids)};
    auto bounds = memo.find({ids}, numbers);
    if (!bounds) {
      bounds = bounds_of(ids, tiles);
      memo.keep({ids}, numbers, *bounds);
    }
    for (const auto& bound : *bounds) to.held.push_back(bound);
    part.low[which] = (*bounds)[0].const_data_ptr<int>();
    part.high[which] = (*bounds)[1].const_data_ptr<int>();
    part.tiles[which] = ids.dim() == 2 && ids.size(0) > 1 ? tiles : 0;
  }
  std::array<Tensor, 2> bounds_of(const Tensor& ids, int64_t tiles) const {
    const int64_t count = ids.size(-1);
    const Tensor place =
        at::arange(tiles * program.tile, ids.options().dtype(at::kLong)).clamp_max(count - 1);
    std::vector<int64_t> sizes{ids.dim() == 2 ? ids.size(0) : 1, tiles, program.tile};
    const Tensor by_tile = ids.index_select(-1, place).view(sizes);
    return {by_tile.amin(-1).contiguous(), by_tile.amax(-1).contiguous()};
  }

  // Each fills the part of its text; false: no stage of its own.
  bool fill_part(const Dense&, Part&) { return false; }
  bool fill_part(const Causal&, Part&) { return true; }
  bool fill_part(const Window& window, Part& part) {
    part.number[0] = window.left;
    part.number[1] = window.right;
    return true;
  }
  bool fill_part(const Prefix& prefix, Part& part) {
    part.number[0] = std::min<int64_t>(prefix.length, INT32_MAX);
    if (prefix.lengths.defined())
      part.array[0] = {integers(prefix.lengths), {prefix.lengths.numel() > 1, 0, 0, 0}};
    return true;
  }
  bool fill_part(const Documents& documents, Part& part) {
    const auto batch = [](const Tensor& ids) { return ids.dim() == 2 ? stride_of(ids, 0) : 0; };
    part.array[0] = {documents.query_ids.const_data_ptr(),
                     {batch(documents.query_ids), 0, documents.query_ids.stride(-1), 0}};
    part.array[1] = {documents.key_ids.const_data_ptr(),
                     {batch(documents.key_ids), 0, 0, documents.key_ids.stride(-1)}};
    if (!program.on_graph && documents.query_ids.size(-1) > 0 && documents.key_ids.size(-1) > 0) {
      bound_tiles(documents.query_ids, 0, part);
      bound_tiles(documents.key_ids, 1, part);
    }
    return true;
  }
  bool fill_part(const Blocks& blocks, Part& part) {
    part.number[0] = blocks.size;
    part.array[0] = broadcast_of(blocks.mask);
    return true;
  }
  bool fill_part(const Keep& keep, Part& part) {
    part.array[0] = broadcast_of(keep.mask);
    return true;
  }
  bool fill_part(const Strided& strided, Part& part) {
    part.number[0] = strided.stride;
    return true;
  }
  bool fill_part(const Fixed& fixed, Part& part) {
    part.number[0] = fixed.stride;
    part.number[1] = fixed.summary;
    return true;
  }
  bool fill_part(const First& first, Part& part) {
    part.number[0] = first.count;
    return true;
  }
  bool fill_part(const Paged& paged, Part&) {
    Arguments& a = to.arguments;
    a.table = integers(paged.table);
    a.table_width = static_cast<int>(paged.table.size(1));
    a.page_rows = static_cast<int>(call.key.size(1));
    a.pages = static_cast<int>(call.key.size(0));
    a.key_lengths = integers(paged.lengths);
    return false;
  }
  bool fill_part(const Ragged& ragged, Part&) {
    to.arguments.query_offsets = integers(ragged.query_offsets);
    to.arguments.key_offsets = integers(ragged.key_offsets);
    return false;
  }
  bool fill_part(const Graph& graph, Part&) {
    to.arguments.row_offsets = integers(graph.row_offsets);
    to.arguments.columns = integers(graph.columns);
    return false;
  }

  void fill_change(const Bias& bias, Change& change) { change.array = broadcast_of(bias.bias); }
  void fill_change(const Alibi& alibi, Change& change) { change.array = by_head(alibi.slopes); }
  void fill_change(const Relative& relative, Change& change) { change.whole = relative.clip; }
  void fill_change(const SoftCap& soft_cap, Change& change) { change.number = soft_cap.cap; }
  void fill_change(const Custom&, Change&) {}
  void fill_change(const EdgeBias&, Change&) {}

  void fill_parameters() {
    Arguments& a = to.arguments;
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (std::is_same_v<Kind, Additive> || std::is_same_v<Kind, GatedAdditive>)
            a.weight = by_feature(kind.weight);
          if constexpr (std::is_same_v<Kind, Kernel>) a.weight = by_query(kind.bandwidth);
        },
        call.choices.score.kind);
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (std::is_same_v<Kind, Softmax>) {
            if (kind.sink.defined()) a.normaliser = by_head(kind.sink);
          } else if constexpr (std::is_same_v<Kind, Entmax>) {
            a.alpha = kind.alpha;
            if (kind.alpha_tensor.defined()) a.normaliser = by_head(kind.alpha_tensor);
          } else if constexpr (std::is_same_v<Kind, TopK>) {
            a.k = kind.k;
          }
        },
        call.choices.normaliser);
  }

  void fill_lengths() {
    Arguments& a = to.arguments;
    const bool packed = is_packed(call.choices.structure);
    a.heads = static_cast<int>(call.query.size(1));
    a.key_heads = static_cast<int>(key_heads(call));
    a.batches = 1;
    if (!packed) a.batches = static_cast<int>(call.query.size(0));
    if (const auto* ragged = find_structure<Ragged>(call.choices.structure))
      a.batches = static_cast<int>(ragged->query_offsets.numel() - 1);
    // One packed sequence may have all rows. Blocks beyond the end of a sequence return at once.
    a.queries = static_cast<int>(call.query.size(packed ? 0 : 2));
    a.keys = static_cast<int>(key_count(call));
    a.rows = row_count(call.query);
    if (call.key_lengths.defined()) a.key_lengths = integers(call.key_lengths);
    a.bottom_right = engine::has_bottom_right(call.choices.structure);
    if (call.query_offset.defined()) {
      a.query_offset = integers(call.query_offset);
      a.query_offset_stride = call.query_offset.numel() > 1;
    }
  }
};

}  // namespace

int64_t stream_of(const Tensor& x) {
  if (x.is_cpu()) return 0;
  const c10::impl::VirtualGuardImpl guard(x.device().type());
  return static_cast<int64_t>(guard.getStream(x.device()).id());
}

int64_t row_count(const Tensor& query) {
  int64_t count = 1;
  for (int64_t d = 0; d + 1 < query.dim(); ++d) count *= query.size(d);
  return count;
}

Rows rows_of(const Tensor& x) {
  void* data = const_cast<void*>(x.const_data_ptr());
  if (x.dim() == 3) return {data, 0, x.stride(1), x.stride(0)};
  return {data, x.stride(0), x.stride(1), x.stride(2)};
}

namespace {

// Of keys or values; [pages, rows, heads, width] where they lie in pages.
Rows key_rows_of(const Call& call, const Tensor& x) {
  if (!find_structure<Paged>(call.choices.structure)) return rows_of(x);
  return {const_cast<void*>(x.const_data_ptr()), x.stride(0), x.stride(2), x.stride(1)};
}

}  // namespace

Filled fill(const Call& call, const Reduced& reduced, const Program& program) {
  Filled to;
  Arguments& a = to.arguments;
  Filling filling{to, call, program};
  filling.fill_lengths();
  filling.fill_parameters();
  a.query = rows_of(reduced.query);
  a.key = key_rows_of(call, reduced.key);
  a.value = key_rows_of(call, call.value);
  a.scale = reduced.scale;
  a.seed = call.seed;
  a.dropout_threshold = engine::dropout_threshold(call.dropout_p);
  a.dropout_scale = 1 / (1 - call.dropout_p);
  int parts = 0, changes = 0;
  each_kind(call.choices.structure, [&](const auto& kind) {
    Part part;
    if (filling.fill_part(kind, part)) a.structure[parts++] = part;
  });
  for (const auto& modifier : call.choices.score.modifiers) {
    Change& change = a.modifier[changes++];
    std::visit([&](const auto& kind) { filling.fill_change(kind, change); }, modifier);
    if (std::holds_alternative<Relative>(modifier) && reduced.relative.defined()) {
      to.held.push_back(reduced.relative.contiguous());
      change.scores = to.held.back().const_data_ptr();
    }
  }
  return to;
}

}  // namespace fovea::cuda
