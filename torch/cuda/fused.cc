#include "torch/cuda/fused.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "torch/composed/finite.h"
#include "torch/cuda/cuda_device.h"
#include "torch/cuda/fill.h"
#include "torch/cuda/tilings/lists.h"
#include "torch/engine_call.h"

namespace fovea::cuda {
namespace {

using at::Tensor;

// Scratch for rows of scores, all blocks together.
constexpr int64_t kScratchBytes = int64_t{512} << 20;
// A lane of a graph's warp holds this many columns at most.
constexpr int64_t kGraphWidth = 1024;

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Waits for the device.
void check_rows(const Call& call, const Tensor& statistics) {
  constexpr double kSpoiled = 2;  // texts/normalisers/base.h
  const Tensor rows = (statistics.select(-1, 3) == kSpoiled).nonzero().cpu();
  if (rows.size(0) == 0) return;
  std::array<int64_t, 3> first{INT64_MAX, 0, 0};
  const auto* ragged = find_structure<Ragged>(call.choices.structure);
  const Tensor offsets = ragged ? ragged->query_offsets.to(at::kCPU, at::kLong) : Tensor();
  for (int64_t n = 0; n < rows.size(0); ++n) {
    const auto* at = rows.const_data_ptr<int64_t>() + n * rows.size(1);
    std::array<int64_t, 3> here{at[0], at[1], rows.size(1) == 3 ? at[2] : 0};
    if (rows.size(1) == 2) {  // packed: (row, head)
      here = {0, at[1], at[0]};
      for (int64_t b = 0; ragged && b + 1 < offsets.numel(); ++b) {
        if (at[0] < offsets[b].item<int64_t>()) break;
        here = {b, at[1], at[0] - offsets[b].item<int64_t>()};
      }
    }
    first = std::min(first, here);
  }
  composed::refuse_row(first[0], first[1], first[2]);
}

}  // namespace

unsigned grid(int64_t n) { return static_cast<unsigned>(std::min<int64_t>(n, INT32_MAX)); }
int64_t chunks_of(int64_t width, int64_t chunk) {
  return std::max<int64_t>(1, (width + chunk - 1) / chunk);
}

int64_t rows_of_block(const Program& program) {
  return static_cast<int64_t>(program.threads) / program.lanes;
}

int64_t parts_of(const Device& device, int64_t blocks, int64_t rows) {
  constexpr int64_t kWaves = 4, kRows = 1024;  // blocks for each place; at least the rows of a part
  return std::clamp<int64_t>(kWaves * device.blocks() / blocks, 1, chunks_of(rows, kRows));
}

std::vector<std::string> kernels_decline(const Call& call) {
  std::vector<std::string> reasons;
  const auto against = [&](bool applies, std::string reason) {
    if (applies) reasons.push_back(std::move(reason));
  };
  const auto& modifiers = call.choices.score.modifiers;
  for (size_t n = 0; n < modifiers.size(); ++n) {
    const auto* custom = std::get_if<Custom>(&modifiers[n]);
    against(custom && !custom->device_value,
            "modifier custom, a function of the host without its expression for devices");
    against(std::holds_alternative<EdgeBias>(modifiers[n]), "modifier edge_bias");
    against(n > 0 && std::holds_alternative<Relative>(modifiers[n]),
            "relative positions that are not the first modifier");
  }
  against(modifiers.size() > kMostChanges,
          "more than " + std::to_string(kMostChanges) + " modifiers");
  int parts = 0;
  each_kind(call.choices.structure, [&](const auto&) { ++parts; });
  against(parts > kMostParts, "more than " + std::to_string(kMostParts) + " structures");
  const bool packed = is_packed(call.choices.structure);
  const int64_t queries = call.query.size(packed ? 0 : 2), keys = key_count(call);
  against(queries >= INT32_MAX / 2 || keys >= INT32_MAX / 2, "more rows than 32 bits count");
  const bool names_key = std::holds_alternative<TopK>(call.choices.normaliser) ||
                         std::holds_alternative<Hard>(call.choices.normaliser);
  against(names_key && keys >= 1 << 23, "more keys than a statistic can name");
  against(find_structure<Graph>(call.choices.structure) &&
              (call.value.size(-1) > kGraphWidth || call.key.size(-1) > kGraphWidth),
          "a graph with rows wider than " + std::to_string(kGraphWidth));
  against(find_structure<Graph>(call.choices.structure) &&
              find_structure<Ragged>(call.choices.structure),
          "a graph of packed sequences");
  against(call.query.numel() == 0 || call.key.numel() == 0 || call.value.numel() == 0,
          "an empty tensor");
  // Of the drivers the one of few queries reads pages; the scores it takes read keys as they are.
  against(reasons.empty() && find_structure<Paged>(call.choices.structure) &&
              !forward_program(call).decodes,
          "pages, but for few queries of 16 bits");
  return reasons;
}

// Of rows as `reduced` makes them, without making them.
Program program_for(const Call& call, Pass pass, const std::string& architecture) {
  const auto& kind = call.choices.score.kind;
  const auto* kernel = std::get_if<Kernel>(&kind);
  const bool stretched = kernel && kernel->metric.defined();
  const bool made =
      stretched || std::holds_alternative<Bilinear>(kind) || std::holds_alternative<Cosine>(kind);
  const int64_t width =
      stretched && kernel->metric.dim() == 2 ? kernel->metric.size(0) : call.key.size(-1);
  const at::ScalarType operand = made ? arithmetic_type(call.query) : call.query.scalar_type();
  return program_of(call, operand, width, pass, architecture);
}

bool wants_bias(const Call& call, at::IntArrayRef wanted) {
  bool wants = false;
  size_t n = 3;
  Choices copy = call.choices;
  visit_arrays(copy, [&](const char* name, Tensor&) {
    wants = wants || (std::string_view(name) == "bias" && n < wanted.size() && wanted[n] != 0);
    ++n;
  });
  return wants;
}

Program forward_program(const Call& call) {
  return program_for(call, Pass::kForward, architecture_of(call.query));
}
std::string off_tensor_cores(const Call& call) {
  const Program program = forward_program(call);
  const auto type = call.query.scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  if (!narrow || !program.has_threshold || program.has_lists) return {};
  if (program.on_graph) return "a graph";
  const std::string reason = lists_decline(call);
  return reason.empty() ? "a score, a modifier or rows that they do not take" : reason;
}
Program backward_program(const Call& call, at::IntArrayRef wanted) {
  return program_for(call, wants_bias(call, wanted) ? Pass::kBackwardWithBias : Pass::kBackward,
                     architecture_of(call.query));
}

void forward(Device& device, const Call& call, const Places& places) {
  const Reduced rows = reduced(call);
  const Program program = forward_program(call);
  Filled filled = fill(call, rows, program);
  Arguments& a = filled.arguments;
  a.output = rows_of(places.output);
  a.statistics = places.statistics.mutable_data_ptr();
  if (places.lse.defined()) a.lse = places.lse.mutable_data_ptr();
  a.empty_rows = reinterpret_cast<unsigned long long*>(places.empty_rows.mutable_data_ptr());
  places.empty_rows.zero_();
  const auto type = arithmetic_type(call.query);
  const auto options = call.query.options().dtype(type).requires_grad(false);

  // Weights by distance, for what relative positions add to values.
  const Relative* relative = relative_of(call);
  Tensor by_distance;
  if (relative && relative->value_table.defined()) {
    by_distance = at::zeros({row_count(call.query), 2 * relative->clip + 1}, options);
    a.modifier[0].weights = by_distance.mutable_data_ptr();
  }

  const int64_t tiles = (a.queries + program.own - 1) / program.own;
  int64_t blocks, chunks = 1;
  Tensor scratch;
  if (program.on_graph) {
    blocks = chunks_of(a.rows, rows_of_block(program));
    if (program.has_threshold) {
      a.scratch_row = find_structure<Graph>(call.choices.structure)->columns.numel();
      scratch = at::empty({a.heads, a.scratch_row}, options);
    }
  } else if (program.on_points) {
    blocks = tiles * a.heads * a.batches;
    chunks = parts_of(device, blocks, a.keys);
    a.scratch_row = chunks;
    scratch = at::empty({a.rows, chunks, 4 + call.value.size(-1)}, options);
  } else if (program.decodes) {
    constexpr int64_t kKeys = 256, kWarps = 4;  // at least the keys of a part; parts of a block
    blocks = int64_t{a.batches} * a.key_heads;
    const int64_t busy = 3 * int64_t{device.blocks()};
    chunks = std::clamp<int64_t>(busy / blocks, 1, chunks_of(a.keys, kKeys));
    a.scratch_row = chunks * kWarps;
    scratch = at::empty({a.rows, a.scratch_row, 4 + call.value.size(-1)}, options);
  } else {
    blocks = tiles * a.heads * a.batches;
    chunks = program.on_tensor_cores ? 1 : chunks_of(call.value.size(-1), program.chunk);
    if (program.is_parted) {
      chunks = std::clamp<int64_t>(device.blocks() / blocks, 1, chunks_of(a.keys, program.tile));
      a.scratch_row = chunks;
      scratch = at::empty({a.rows, chunks, 4 + call.value.size(-1)}, options);
    }
    if (program.has_threshold && !program.has_lists) {
      a.scratch_row = round_up(a.keys, program.tile);
      const int64_t row_bytes = a.scratch_row * static_cast<int64_t>(c10::elementSize(type));
      const int64_t rows = int64_t{program.own} * program.scratch_arrays;
      const int64_t fitting = kScratchBytes / (chunks * rows * row_bytes);
      const int64_t busy = int64_t{device.blocks()} / 2 * program.resident;
      blocks = std::min({blocks, busy, std::max<int64_t>(1, fitting)});
      scratch = at::empty({blocks * chunks, rows, a.scratch_row}, options);
    }
  }
  if (scratch.defined()) a.scratch = scratch.mutable_data_ptr();
  device.launch(program, "fovea_forward", grid(blocks), grid(chunks), a);
  if (program.decodes || program.on_points || program.is_parted)
    device.launch(program, "fovea_merge", grid(chunks_of(a.rows, program.merged_rows)), 1, a);
  if (by_distance.defined()) {
    auto sizes = call.query.sizes().vec();
    sizes.back() = by_distance.size(1);
    const Tensor more = at::matmul(by_distance.view(sizes), relative->value_table);
    places.output.copy_(places.output.to(type) + more);
  }
  if (call.check_finite) check_rows(call, places.statistics);
}

}  // namespace fovea::cuda
