#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <optional>

#include "torch/array_memo.h"
#include "torch/composed/recording.h"
#include "torch/cuda/fill.h"
#include "torch/cuda/fused.h"
#include "torch/cuda/row_sums.h"
#include "torch/cuda/sdpa.h"
#include "torch/engine_call.h"
#include "torch/layout.h"

namespace fovea::cuda {
namespace {

using at::Tensor;

// Slots of a row's gradients (texts/pair.h).
constexpr int64_t kBandwidthSlot = 0, kParameterSlot = 1, kFirstChange = 2;

// A call whose floating-point tensors are leaves of their own.
Call leaves_of(const Call& call) {
  Call leaves = call;
  const auto leaf = [](const Tensor& x) {
    return x.detach().requires_grad_(x.is_floating_point());
  };
  for (Tensor* x : {&leaves.query, &leaves.key}) *x = leaf(*x);
  visit_arrays(leaves.choices, [&](const char*, Tensor& x) { x = leaf(x); });
  return leaves;
}

// Rows without a gradient count as zeros, so that a NaN in them does not reach the gradient of what
// multiplies them.
Tensor only_moved(const Tensor& rows, const Tensor& gradient) {
  return at::where((gradient != 0).any(-1, /*keepdim=*/true), rows, 0.0);
}

// For each key the edges that lead to it, in the order of the graph: the edges, their rows, and where
// a key's begin. Made once for a graph, on a stream that then uses it.
Tensor transposed(const Graph& graph, int64_t keys) {
  static auto& memo = *new ArrayMemo<Tensor>;
  const int64_t stream = stream_of(graph.columns);
  if (auto known = memo.find(arrays_of(graph), {keys, stream})) return *std::move(known);
  const Tensor columns = graph.columns.to(at::kLong);
  const Tensor order = std::get<1>(columns.sort(/*stable=*/true, -1, /*descending=*/false));
  const Tensor rows =
      at::repeat_interleave(graph.row_offsets.to(at::kLong).diff(),
                            std::optional<int64_t>(columns.numel()));  // a number would repeat all
  const Tensor ends = at::bincount(columns, {}, keys).cumsum(0);
  Tensor all =
      at::cat({order, rows.index_select(0, order), at::constant_pad_nd(ends, {1, 0})}).to(at::kInt);
  memo.keep(arrays_of(graph), {keys, stream}, all);
  return all;
}

// Rows aligned for loads of 16 bytes, also where they are views of a larger tensor.
Tensor aligned(const Tensor& x) {
  const Tensor rows = operators::with_whole_loads(x.stride(-1) == 1 ? x : x.contiguous());
  const bool starts = reinterpret_cast<uintptr_t>(rows.const_data_ptr()) % 16 == 0;
  return starts ? rows : rows.clone(at::MemoryFormat::Contiguous);
}

class Backward {
 public:
  Backward(Device& device, const Call& call, const Tensor& d_output, at::IntArrayRef wanted)
      : device_(device),
        call_(call),
        wanted_(wanted),
        type_(arithmetic_type(call.query)),
        options_(call.query.options().dtype(type_).requires_grad(false)),
        d_output_(aligned(d_output.to(call.value.scalar_type()))) {
    size_t arrays = 0;
    Choices copy = call.choices;
    visit_arrays(copy, [&](const char*, Tensor&) { ++arrays; });
    gradients_.resize(3 + arrays);
  }

  std::vector<Tensor> run(const Tensor& d_lse, const Tensor& output, const Tensor& statistics) {
    leaves_ = leaves_of(call_);
    {
      const composed::Recording recording;
      rows_ = reduced(leaves_);
    }
    const bool is_reduced =
        rows_.query.grad_fn() || rows_.key.grad_fn() || rows_.relative.defined();
    const Reduced plain{rows_.query.detach(), rows_.key.detach(),
                        rows_.relative.defined() ? rows_.relative.detach() : Tensor(), rows_.scale};
    const Program program = backward_program(call_, wanted_);
    Filled filled = fill(call_, plain, program);
    Arguments& a = filled.arguments;
    a.d_output = rows_of(d_output_);
    const Tensor from_lse = d_lse.defined() ? d_lse.to(type_).contiguous() : Tensor();
    if (from_lse.defined()) a.d_lse = from_lse.const_data_ptr();
    const Tensor rows = aligned(output), saved = statistics.contiguous();
    a.output = rows_of(rows);
    a.statistics = const_cast<void*>(saved.const_data_ptr());
    const int64_t numbers = program.on_tensor_cores ? 2 : 1;  // drivers/mma/mma_pairs.h
    const Tensor delta = at::empty({numbers * a.rows}, options_);
    a.delta = delta.mutable_data_ptr();
    place_gradients(plain, program, a);
    if (program.on_points)
      launch_points(program, a);
    else
      launch(program, a);
    if (is_reduced) through_reduction();
    sum_parameters();
    for (size_t n = 0; n < 2; ++n) {
      if (!gradients_[n].defined()) gradients_[n] = n == 0 ? d_query_ : d_key_;
      if (!wanted_[n]) gradients_[n] = Tensor();
    }
    gradients_[2] = d_value_;
    return std::move(gradients_);
  }

 private:
  Tensor place(const Tensor& like, bool zeroed) const {
    Tensor x = operators::empty_of(operators::operand_gradient_layout(like), like);
    return zeroed ? x.zero_() : x;
  }
  bool wants(size_t n) const { return wanted_[n] != 0; }

  void place_gradients(const Reduced& rows, const Program& program, Arguments& a) {
    const bool packed = find_structure<Ragged>(call_.choices.structure) != nullptr;
    const bool direct = std::holds_alternative<Location>(call_.choices.score.kind) ||
                        std::holds_alternative<Constant>(call_.choices.score.kind);
    d_query_ = place(rows.query, packed || direct);
    d_key_ = place(rows.key, packed || direct);
    a.d_query = rows_of(d_query_);
    a.d_key = rows_of(d_key_);
    if (wants(2)) {
      d_value_ = place(call_.value, packed);
      a.d_value = rows_of(d_value_);
    }
    const auto count = static_cast<int64_t>(call_.choices.score.modifiers.size());
    row_gradients_ = at::zeros({kFirstChange + count, a.rows}, options_);
    a.row_gradients = row_gradients_.mutable_data_ptr();
    const bool weighted = std::holds_alternative<Additive>(call_.choices.score.kind) ||
                          std::holds_alternative<GatedAdditive>(call_.choices.score.kind);
    if (weighted) {
      const int64_t tiles =
          program.on_graph ? a.queries : (a.queries + program.tile - 1) / program.tile;
      const int64_t features = std::holds_alternative<Additive>(call_.choices.score.kind)
                                   ? rows.key.size(-1)
                                   : rows.key.size(-1) / 2;
      d_weight_ = at::zeros({a.batches, a.heads, tiles, features}, options_);
      a.d_weight = d_weight_.mutable_data_ptr();
    }
    if (const Relative* relative = relative_of(call_)) {
      const std::vector<int64_t> sizes{a.rows, 2 * relative->clip + 1};
      Change& change = a.modifier[0];
      if (relative->key_table.defined()) {
        d_relative_ = at::zeros(sizes, options_);
        change.d_scores = d_relative_.mutable_data_ptr();
      }
      if (relative->value_table.defined()) {
        by_distance_ = at::zeros(sizes, options_);
        change.weights = by_distance_.mutable_data_ptr();
        products_ = at::matmul(d_output_.to(type_), relative->value_table.t()).contiguous();
        change.products = products_.const_data_ptr();
      }
    }
  }

  void launch(const Program& program, Arguments& a) {
    int64_t query_blocks = chunks_of(a.rows, rows_of_block(program)), query_chunks = 1;
    int64_t key_blocks = chunks_of(int64_t{a.keys} * a.key_heads, rows_of_block(program)),
            key_chunks = 1;
    if (program.on_graph) {
      transpose_graph(a);
    } else {
      query_blocks = chunks_of(a.queries, program.own) * a.heads * a.batches;
      key_blocks = chunks_of(a.keys, program.key_own) * a.key_heads * a.batches;
    }
    if (!program.on_graph && !program.on_tensor_cores) {
      query_chunks = program.features == 0 ? 1 : chunks_of(program.features, program.feature_chunk);
      key_chunks = std::max(query_chunks, chunks_of(call_.value.size(-1), program.chunk));
    }
    device_.launch(program, "fovea_gradient_query", grid(query_blocks), grid(query_chunks), a);
    if (wants(1) || wants(2) || rows_.key.requires_grad())
      device_.launch(program, "fovea_gradient_key", grid(key_blocks), grid(key_chunks), a);
    if (wants_bias(call_, wanted_)) launch_biases(program, a);
  }

  // Parts of the sums of `count` rows, `numbers` each, as a kernel leaves them.
  Tensor parts(const Program& program, const char* kernel, int64_t blocks, int64_t others,
               int64_t count, int64_t numbers, Arguments& a) {
    a.scratch_row = parts_of(device_, blocks, others);
    const Tensor parts = at::empty({count, a.scratch_row, numbers}, options_);
    a.scratch = parts.mutable_data_ptr();
    device_.launch(program, kernel, grid(blocks), grid(a.scratch_row), a);
    return parts.sum(1);
  }

  void launch_points(const Program& program, Arguments& a) {
    const int64_t width = program.features, value_width = call_.value.size(-1);
    const auto fill = [](const Tensor& to, const Tensor& sums, int64_t first) {
      to.copy_(sums.narrow(-1, first, to.size(-1)).view(to.sizes()));
    };
    const Tensor of_queries = parts(program, "fovea_gradient_query",
                                    chunks_of(a.queries, program.own) * a.heads * a.batches, a.keys,
                                    a.rows, width + 1, a);
    fill(d_query_, of_queries, 0);
    row_gradients_.select(0, kBandwidthSlot).copy_(of_queries.select(-1, width));
    if (!wants(1) && !wants(2) && !rows_.key.requires_grad()) return;
    const Tensor of_keys = parts(
        program, "fovea_gradient_key", chunks_of(a.keys, program.key_own) * a.key_heads * a.batches,
        a.queries, int64_t{a.batches} * a.key_heads * a.keys, width + value_width, a);
    fill(d_key_, of_keys, 0);
    if (d_value_.defined()) fill(d_value_, of_keys, width);
  }

  void transpose_graph(Arguments& a) {
    held_.push_back(transposed(*find_structure<Graph>(call_.choices.structure), a.keys));
    const int* const all = held_.back().const_data_ptr<int>();
    const int64_t edges = (held_.back().numel() - a.keys - 1) / 2;
    a.edges = all;
    a.edge_rows = all + edges;
    a.edge_offsets = all + 2 * edges;
  }

  // fn(modifier, its number, the place of its first array among the gradients).
  template <class Visit>
  void each_modifier(Visit visit) const {
    size_t place = 3;
    const auto count = [&](const char*, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Tensor>) place += field.defined();
    };
    auto score = call_.choices.score;
    std::visit([&](auto& kind) { kind.fields(count); }, score.kind);
    for (size_t n = 0; n < score.modifiers.size(); ++n) {
      visit(score.modifiers[n], n, place);
      std::visit([&](auto& kind) { kind.fields(count); }, score.modifiers[n]);
    }
  }

  void launch_biases(const Program& program, Arguments& a) {
    each_modifier([&](const Modifier& modifier, size_t n, size_t place) {
      const auto* bias = std::get_if<Bias>(&modifier);
      if (!bias || !wants(place)) return;
      const Tensor gradient = at::zeros(bias->bias.sizes(), options_);
      const int64_t lead = 4 - gradient.dim();
      int64_t blocks = 1;
      for (int64_t d = 0; d < 4; ++d) {
        const int64_t size = d < lead ? 1 : gradient.size(d - lead);
        a.d_bias_stride[d] = size == 1 ? 0 : gradient.stride(d - lead);
        blocks *= d < 2 ? size : (size + program.tile - 1) / program.tile;
        if (d == 2) a.d_bias_rows = static_cast<int>(size);
        if (d == 3) a.d_bias_columns = static_cast<int>(size);
      }
      a.d_bias = gradient.mutable_data_ptr();
      a.d_bias_of = static_cast<int>(n);
      device_.launch(program, "fovea_gradient_bias", grid(blocks), 1, a);
      gradients_[place] = gradient;
    });
  }

  // From the rows the kernels saw to the call's: libtorch differentiates its own operations.
  void through_reduction() {
    Call masked = leaves_;
    std::vector<Tensor> ends, given, inputs;
    const composed::Recording recording;
    const auto mask = [&](Tensor& x, const Tensor& gradient) {
      x = only_moved(x.detach(), gradient).requires_grad_();
    };
    Tensor query_moves = d_query_;
    if (d_relative_.defined()) {
      auto sizes = call_.query.sizes().vec();
      sizes.back() = d_relative_.size(1);
      query_moves = at::cat({d_query_.to(type_), d_relative_.view(sizes)}, -1);
    }
    mask(masked.query, query_moves);
    mask(masked.key, d_key_);
    const Reduced rows = reduced(masked);
    const auto add = [&](const Tensor& end, const Tensor& gradient) {
      if (!end.requires_grad()) return;
      ends.push_back(end);
      given.push_back(gradient.view_as(end));
    };
    add(rows.query, d_query_);
    add(rows.key, d_key_);
    if (rows.relative.defined()) add(rows.relative, d_relative_);
    inputs = {masked.query, masked.key};
    std::vector<size_t> places{0, 1};
    size_t n = 3;
    visit_arrays(masked.choices, [&](const char*, Tensor& x) {
      if (x.requires_grad()) inputs.push_back(x), places.push_back(n);
      ++n;
    });
    const auto found = torch::autograd::grad(ends, inputs, given, /*retain_graph=*/false,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].defined()) gradients_[places[i]] = found[i].detach();
    }
  }

  Tensor summed(int64_t slot, const Tensor& parameter) const {
    return sum_rows(call_, row_gradients_.select(0, slot), parameter);
  }

  void sum_parameters() {
    size_t place = 3;
    const auto give = [&](const Tensor& array, const Tensor& gradient) {
      if (!array.defined()) return;
      if (gradient.defined()) gradients_[place] = gradient;
      ++place;
    };
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (std::is_same_v<Kind, Additive> || std::is_same_v<Kind, GatedAdditive>) {
            const Tensor by_head = d_weight_.sum(kButHeads);
            give(kind.weight, by_head.sum_to_size(kind.weight.sizes()));
          } else if constexpr (std::is_same_v<Kind, Kernel>) {
            give(kind.bandwidth, summed(kBandwidthSlot, kind.bandwidth));
            give(kind.metric, {});
          } else if constexpr (std::is_same_v<Kind, Bilinear>) {
            give(kind.weight, {});
          } else if constexpr (std::is_same_v<Kind, Cosine>) {
            give(kind.beta, {});
          }
        },
        call_.choices.score.kind);
    each_modifier([&](const Modifier& modifier, size_t n, size_t first) {
      place = first;
      if (const auto* alibi = std::get_if<Alibi>(&modifier))
        give(alibi->slopes, summed(kFirstChange + static_cast<int64_t>(n), alibi->slopes));
      if (const auto* bias = std::get_if<Bias>(&modifier)) give(bias->bias, {});
      if (const auto* relative = std::get_if<Relative>(&modifier)) {
        give(relative->key_table, {});
        if (relative->value_table.defined())
          give(relative->value_table,
               at::matmul(by_distance_.t(),
                          d_output_.to(type_).reshape({by_distance_.size(0), -1})));
      }
    });
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (std::is_same_v<Kind, Softmax>)
            give(kind.sink, kind.sink.defined() ? summed(kParameterSlot, kind.sink) : Tensor());
          if constexpr (std::is_same_v<Kind, Entmax>)
            give(kind.alpha_tensor, kind.alpha_tensor.defined()
                                        ? summed(kParameterSlot, kind.alpha_tensor)
                                        : Tensor());
        },
        call_.choices.normaliser);
  }

  Device& device_;
  const Call& call_;
  at::IntArrayRef wanted_;
  at::ScalarType type_;
  at::TensorOptions options_;
  Tensor d_output_;
  Call leaves_;
  Reduced rows_;
  Tensor d_query_, d_key_, d_value_, row_gradients_, d_weight_, d_relative_, by_distance_,
      products_;
  std::vector<Tensor> held_, gradients_;
};

}  // namespace

std::vector<std::string> gradients_decline(const Call& call, at::IntArrayRef wanted) {
  std::vector<std::string> reasons;
  if (find_structure<Graph>(call.choices.structure) && wants_bias(call, wanted))
    reasons.emplace_back("the gradient of a bias on a graph");
  for (const auto& modifier : call.choices.score.modifiers) {
    const auto* custom = std::get_if<Custom>(&modifier);
    if (custom && !custom->device_derivative)
      reasons.emplace_back("modifier custom, without its derivative's expression for devices");
  }
  return reasons;
}

std::vector<Tensor> backward(Device& device, const Call& call, const Tensor& d_output,
                             const Tensor& d_lse, const Tensor& output, const Tensor& statistics,
                             at::IntArrayRef wanted) {
  const at::NoGradGuard guard;
  return Backward(device, call, d_output, wanted).run(d_lse, output, statistics);
}

}  // namespace fovea::cuda
