#include "torch/composed/walk.h"

#include <algorithm>
#include <tuple>

#include "engine/call/facts.h"
#include "torch/composed/composed.h"
#include "torch/composed/random.h"
#include "torch/engine_call.h"

namespace fovea::composed {
namespace {

using at::Tensor;

// A batch of sequences of the same positions, as [B, H, L, E]: the whole call, or one sequence of a
// packed one.
struct Sequences {
  Tensor query, key, value;
  Tensor lengths;     // int64 [B, 1, 1, 1]
  int64_t batch = 0;  // of the first
};

// The position of query row 0 of each sequence, int64 [B or 1, 1, 1, 1], or undefined for 0.
Tensor query_offset(const Call& call, const Sequences& sequences) {
  if (engine::has_bottom_right(call.choices.structure))
    return sequences.lengths - sequences.query.size(2);
  if (!call.query_offset.defined()) return {};
  const Tensor each = call.query_offset.to(sequences.lengths.options(), /*non_blocking=*/true);
  if (each.size(0) == 1) return each.view({1, 1, 1, 1});
  return each.narrow(0, sequences.batch, sequences.query.size(0)).view({-1, 1, 1, 1});
}

// (rows, H, E) to [1, H, rows, E].
Tensor unpack(const Tensor& packed, int64_t first, int64_t count) {
  return packed.narrow(0, first, count).transpose(0, 1).unsqueeze(0);
}

// Key heads repeated so that every query head has its own; heads are dimension 1 of both.
Tensor repeat_heads(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

Tensor lengths_of(const Call& call, int64_t batch, int64_t batches, int64_t keys) {
  const auto options = call.query.options().dtype(at::kLong);
  if (!call.key_lengths.defined()) return at::full({batches, 1, 1, 1}, keys, options);
  return call.key_lengths.to(options, /*non_blocking=*/true)
      .narrow(0, batch, batches)
      .clamp_max(keys)
      .view({-1, 1, 1, 1});
}

std::vector<int64_t> to_vector(const Tensor& offsets) {
  const Tensor host = offsets.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

template <class Body>
void for_each_sequences(const Call& call, Body body) {
  const int64_t heads = call.query.size(1);
  const Tensor key = repeat_heads(call.key, heads), value = repeat_heads(call.value, heads);
  const auto* ragged = find_structure<Ragged>(call.choices.structure);
  if (ragged) {
    const auto queries = to_vector(ragged->query_offsets), keys = to_vector(ragged->key_offsets);
    for (size_t b = 0; b + 1 < queries.size(); ++b) {
      const int64_t n = keys[b + 1] - keys[b], batch = static_cast<int64_t>(b);
      body(Sequences{unpack(call.query, queries[b], queries[b + 1] - queries[b]),
                     unpack(key, keys[b], n), unpack(value, keys[b], n),
                     lengths_of(call, batch, 1, n), batch});
    }
  } else if (is_packed(call.choices.structure)) {
    const auto all = [](const Tensor& x) { return unpack(x, 0, x.size(0)); };
    body(Sequences{all(call.query), all(key), all(value), lengths_of(call, 0, 1, key.size(0)), 0});
  } else {
    body(
        Sequences{call.query, key, value, lengths_of(call, 0, call.query.size(0), key.size(2)), 0});
  }
}

// The columns of some rows of a graph (int64 [l, 1]) and their edges, [l, largest degree]; columns
// are padded with -1.
std::pair<Tensor, Tensor> graph_columns(const Graph& graph, const Tensor& rows) {
  const Tensor offsets = graph.row_offsets.to(at::kLong);
  const Tensor start = offsets.index({rows}), degree = offsets.index({rows + 1}) - start;
  const int64_t widest = rows.numel() > 0 ? degree.max().item<int64_t>() : 0;
  const Tensor place = at::arange(widest, rows.options()).unsqueeze(0);
  if (graph.columns.numel() == 0) {
    const Tensor none = at::full({rows.size(0), widest}, -1, rows.options());
    return {none, none};
  }
  const Tensor edge = (start + place).clamp_max(graph.columns.numel() - 1);
  return {at::where(place < degree, graph.columns.to(at::kLong).index({edge}), -1), edge};
}

// Key or value rows of each query's own, [B, H, l, S, E].
Tensor own_rows(const Tensor& rows, const Tensor& columns, int64_t count) {
  const Tensor index = columns.clamp_min(0).expand({count, columns.size(1)}).reshape({-1});
  auto sizes = rows.sizes().vec();
  const int64_t width = sizes.back();
  return rows.index_select(2, index).reshape({sizes[0], sizes[1], count, columns.size(1), width});
}

// Rows of every masked pair replaced by zeros.
Tensor only_allowed(const Tensor& rows, const Tensor& allowed) {
  return at::where(allowed.unsqueeze(-1), rows, 0.0);
}

bool all_finite(const Tensor& x) { return x.isfinite().all().item<bool>(); }

// Whether all queries of a sequence see the same keys, up to its length. Padding is then removed
// from the operands, and their check for values that are not finite does not wait for the device.
bool only_lengths_mask(const Structure& structure) {
  return std::all_of(structure.all_of.begin(), structure.all_of.end(),
                     [](const auto& part) { return std::holds_alternative<Dense>(part); });
}
bool operands_finite(const Call& call) {
  return only_lengths_mask(call.choices.structure) ||
         (all_finite(call.query) && all_finite(call.key) && all_finite(call.value));
}

// Zeros for every row that no query sees and for every query that sees no row.
void take_out_padding(Block& block) {
  const Tensor real = block.j.view({1, 1, -1, 1}) < block.lengths;
  block.query = at::where(block.lengths > 0, block.query, 0.0);
  block.key = at::where(real, block.key, 0.0);
  block.value = at::where(real, block.value, 0.0);
}

// The block of queries `rows` (int64 [l, 1]); `first` is the first of a range, or -1.
Block make_block(const Call& call, const Sequences& sequences, const Tensor& rows, int64_t first,
                 bool finite) {
  Block block;
  const int64_t count = rows.size(0);
  block.batch = sequences.batch;
  block.batches = sequences.query.size(0);
  block.first = first;
  block.count = count;
  block.queries = sequences.query.size(2);
  block.keys = sequences.key.size(2);
  block.lengths = sequences.lengths;
  block.i = block.position = rows;
  if (const Tensor offset = query_offset(call, sequences); offset.defined())
    block.position = rows + offset;
  block.query = block.rows(sequences.query, 2);
  if (const auto* graph = find_structure<Graph>(call.choices.structure)) {
    block.gathered = true;
    std::tie(block.j, block.edge) = graph_columns(*graph, rows);
    block.key = own_rows(sequences.key, block.j, count);
    block.value = own_rows(sequences.value, block.j, count);
  } else {
    block.j = at::arange(block.keys, rows.options()).unsqueeze(0);
    block.key = sequences.key;
    block.value = sequences.value;
  }
  block.allowed = allowed_pairs(call.choices.structure, block);
  if (call.key_lengths.defined() && only_lengths_mask(call.choices.structure)) {
    take_out_padding(block);
  }
  if (!finite) {
    const Tensor allowed = block.allowed.expand({block.batches, -1, count, block.columns()});
    if (!block.own_keys()) {
      block.key = block.key.unsqueeze(2);
      block.value = block.value.unsqueeze(2);
    }
    block.key = only_allowed(block.key, allowed);
    block.value = only_allowed(block.value, allowed);
    block.query = at::where(allowed.any(-1, /*keepdim=*/true), block.query, 0.0);
  }
  return block;
}

// How many queries a block takes so that its largest array stays within kBlockElements.
int64_t block_rows(const Call& call, const Sequences& sequences, bool finite) {
  const bool rows_of_pairs = !finite || find_structure<Graph>(call.choices.structure) ||
                             !(std::holds_alternative<Dot>(call.choices.score.kind) ||
                               std::holds_alternative<Bilinear>(call.choices.score.kind) ||
                               std::holds_alternative<Location>(call.choices.score.kind) ||
                               std::holds_alternative<Constant>(call.choices.score.kind));
  int64_t columns = sequences.key.size(2);
  if (const auto* graph = find_structure<Graph>(call.choices.structure);
      graph && sequences.query.size(2) > 0) {
    columns = graph->row_offsets.diff().max().item<int64_t>();
  }
  const int64_t width =
      rows_of_pairs ? std::max(sequences.key.size(3), sequences.value.size(3)) : 1;
  const int64_t a_row = sequences.query.size(0) * sequences.query.size(1) * columns * width;
  return std::clamp<int64_t>(kBlockElements / std::max<int64_t>(a_row, 1), 1,
                             std::max<int64_t>(sequences.query.size(2), 1));
}

}  // namespace

void for_each_block(const Call& call, const std::function<void(const Block&)>& body) {
  const bool finite = operands_finite(call);
  for_each_sequences(call, [&](const Sequences& sequences) {
    const int64_t queries = sequences.query.size(2), rows = block_rows(call, sequences, finite);
    for (int64_t first = 0; first < queries; first += rows) {
      const int64_t end = std::min(first + rows, queries);
      const Tensor positions =
          at::arange(first, end, call.query.options().dtype(at::kLong).requires_grad(false));
      body(make_block(call, sequences, positions.unsqueeze(1), first, finite));
    }
  });
}

void for_each_block_of(const Call& call, const Tensor& rows,
                       const std::function<void(const Block&)>& body) {
  const bool finite = operands_finite(call);
  for_each_sequences(call, [&](const Sequences& sequences) {
    const Tensor places = (rows < sequences.query.size(2)).nonzero().squeeze(1),
                 here = rows.index_select(0, places);
    const int64_t step = block_rows(call, sequences, finite);
    for (int64_t first = 0; first < here.size(0); first += step) {
      Block block =
          make_block(call, sequences, here.slice(0, first, first + step).unsqueeze(1), -1, finite);
      block.places = places.slice(0, first, first + step);
      body(block);
    }
  });
}

Call in_arithmetic(const Call& call) {
  const auto type = arithmetic_type(call.query);
  Call wide = call;
  for (Tensor* x : {&wide.query, &wide.key, &wide.value}) *x = x->to(type);
  visit_arrays(wide.choices, [&](const char*, Tensor& array) {
    if (array.is_floating_point()) array = array.to(type);
  });
  return wide;
}

Weighed weigh(const Call& call, const Block& block) {
  const Tensor e = scores(call.choices.score, block, face_of(call.choices));
  auto sizes = at::infer_size(e.sizes(), block.allowed.sizes());
  return normalise(call.choices, e.expand(sizes), block, call.seed);
}

BlockOutputs attend_block(const Call& call, const Block& block) {
  auto [weights, lse, empty, spoiled] = weigh(call, block);
  if (call.dropout_p > 0) {
    weights =
        weights * dropout_keep(block, weights, call.dropout_p, call.seed) / (1 - call.dropout_p);
  }
  Tensor output = aggregate(weights, block.value);
  if (const Tensor more = relative_values(call.choices.score, block, weights); more.defined())
    output = output + more;
  return {output, lse, empty, spoiled};
}

}  // namespace fovea::composed
