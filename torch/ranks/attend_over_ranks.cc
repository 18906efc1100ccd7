// The operator fovea::attend_over_ranks: checks, and which way a normaliser goes.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/library.h>

#include "fovea/ranks.h"
#include "torch/lists.h"
#include "torch/ranks/streaming.h"
#include "torch/ranks/two_passes.h"
#include "torch/spec.h"

namespace fovea {
namespace over_ranks {
namespace {

template <class Kind, class... Allowed>
inline constexpr bool kIsOneOf = (std::is_same_v<Kind, Allowed> || ...);

void check_score(const Score& score) {
  std::visit(
      []<class Kind>(const Kind&) {
        if (!kIsOneOf<Kind, Dot, Bilinear, Additive, GatedAdditive, Kernel, Cosine, RankOne,
                      Constant>)
          throw InvalidArgument(
              std::string("score: ") + Kind::kName +
              ", expected one of dot, bilinear, additive, gated_additive, kernel, "
              "cosine, rank_one, constant");
      },
      score.kind);
  for (const Modifier& modifier : score.modifiers)
    if (!std::holds_alternative<Alibi>(modifier) && !std::holds_alternative<SoftCap>(modifier))
      throw InvalidArgument("score: " + name_of(modifier) +
                            ", expected alibi or soft_cap: others have numbers for rows that other "
                            "ranks hold");
}

void check_structure(const Structure& structure) {
  choice::each_kind(structure, []<class Kind>(const Kind& kind) {
    if constexpr (!kIsOneOf<Kind, Dense, Causal, Window, Documents>)
      throw InvalidArgument(std::string("structure: ") + Kind::kName +
                            ", expected dense, causal, window, documents or what &, | and ~ make "
                            "of them");
    if constexpr (std::is_same_v<Kind, Causal>) {
      if (kind.alignment != Alignment::kTopLeft)
        throw InvalidArgument(
            "structure: causal, bottom_right, expected top_left: positions are those of the whole "
            "sequence");
    }
    if constexpr (std::is_same_v<Kind, Documents>) {
      if (kind.query_ids.sizes() != kind.key_ids.sizes())
        throw InvalidArgument("structure: documents of " + std::to_string(kind.query_ids.numel()) +
                              " and " + std::to_string(kind.key_ids.numel()) +
                              " ids, expected the same");
    }
  });
}

void check_tensors(const Tensor& query, const Tensor& key, const Tensor& value) {
  const std::pair<const char*, const Tensor&> all[] = {
      {"query", query}, {"key", key}, {"value", value}};
  for (const auto& [name, tensor] : all) {
    const at::Device device = tensor.device();
    if (!device.is_cpu() && !device.is_cuda())
      throw InvalidArgument(std::string(name) + ": on " + device.str() +
                            ", expected the CPU or a CUDA device");
    if (device != query.device())
      throw InvalidArgument(std::string(name) + ": on " + device.str() + ", expected " +
                            query.device().str() + " (the query's)");
    if (tensor.dim() != 4)
      throw InvalidArgument(std::string(name) + ": " + std::to_string(tensor.dim()) +
                            " dimensions, expected 4: [B, H, L / ranks, E]");
  }
}

void check_options(const RankOptions& options) {
  const std::pair<const char*, int64_t> numbers[] = {{"piece", options.piece},
                                                     {"candidates", options.candidates}};
  for (const auto& [name, number] : numbers)
    if (number < 1)
      throw InvalidArgument(std::string(name) + ": " + std::to_string(number) +
                            ", expected at least 1");
}

// A key of that score and without a value, seen by every query.
AttendedOverRanks with_sink(const AttendedOverRanks& found, const Tensor& sink) {
  const Tensor column = sink.to(found.lse.scalar_type()).reshape({-1, 1});
  const Tensor both = at::logaddexp(found.lse, column);
  const Tensor share = (found.lse - both).exp().unsqueeze(-1).to(found.output.scalar_type());
  return {found.output * share, both};
}

// Sums over all keys, divided by the sum of the weights, which is one more column of the values.
Tensor mean_of(const Tensor& query, const Tensor& key, const Tensor& value, const Choices& weighed,
               const PlanPointer& plan) {
  const Tensor one = at::ones_like(value.narrow(-1, 0, 1));
  const Tensor sums = stream(query, key, at::cat({value, one}, -1), weighed, plan).output;
  const Tensor total = sums.narrow(-1, 0, value.size(-1)),
               mass = sums.narrow(-1, value.size(-1), 1);
  const Tensor none = mass == 0;
  return (total / mass.masked_fill(none, 1)).masked_fill(none, 0);
}

}  // namespace
}  // namespace over_ranks

std::vector<int64_t> stretches_of_rank(int64_t rank, int64_t ranks, Layout layout) {
  if (layout == Layout::kContiguous) return {rank};
  return {rank, 2 * ranks - 1 - rank};
}

AttendedOverRanks attend_over_ranks_full(const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& value, const ProcessGroup& group,
                                         const Choices& choices, const RankOptions& options) {
  using namespace over_ranks;
  check_tensors(query, key, value);
  check_options(options);
  check_score(choices.score);
  check_structure(choices.structure);
  if (needs_two_passes(choices.normaliser)) check_two_passes(query, choices);
  const auto plan = c10::make_intrusive<Plan>(query, key, value, choices.structure, group, options);
  if (needs_two_passes(choices.normaliser))
    return {attend_in_two_passes(query, key, value, choices, plan, options.candidates), {}};
  if (const auto* softmax = std::get_if<Softmax>(&choices.normaliser)) {
    const auto found =
        stream(query, key, value, {choices.score, Softmax{}, choices.structure}, plan);
    return softmax->sink.defined() ? with_sink(found, softmax->sink) : found;
  }
  if (std::holds_alternative<Uniform>(choices.normaliser))
    return {mean_of(query, key, value, {Constant{}, Unnormalised{}, choices.structure}, plan), {}};
  if (std::holds_alternative<KernelRatio>(choices.normaliser))
    return {mean_of(query, key, value, {choices.score, Unnormalised{}, choices.structure}, plan),
            {}};
  return stream(query, key, value, choices, plan);
}

at::Tensor attend_over_ranks(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const ProcessGroup& group,
                             const Choices& choices, const RankOptions& options) {
  return attend_over_ranks_full(query, key, value, group, choices, options).output;
}

namespace over_ranks {
namespace {

Layout layout_of(c10::string_view name) {
  if (name == "contiguous") return Layout::kContiguous;
  if (name == "zigzag") return Layout::kZigzag;
  throw InvalidArgument("layout: '" + std::string(name.data(), name.size()) +
                        "', expected 'contiguous' or 'zigzag'");
}

std::tuple<Tensor, Tensor> operate(const Tensor& query, const Tensor& key, const Tensor& value,
                                   c10::string_view choices,
                                   const c10::List<std::optional<Tensor>>& arrays,
                                   const at::OptionalIntArrayRef& numbers, c10::string_view group,
                                   c10::string_view layout, int64_t piece, int64_t candidates) {
  using operators::Absentable;
  const Choices given =
      unflatten({choices.data(), choices.size()}, Absentable<at::TensorList>::given(arrays),
                numbers ? c10::fromIntArrayRefSlow(*numbers) : c10::SymIntArrayRef());
  const RankOptions options{layout_of(layout), piece, candidates};
  const auto found = attend_over_ranks_full(
      query, key, value, c10d::resolve_process_group({group.data(), group.size()}), given, options);
  return {found.output, found.lse.defined() ? found.lse : at::empty({0}, query.options())};
}

}  // namespace
}  // namespace over_ranks
}  // namespace fovea

TORCH_LIBRARY_FRAGMENT(fovea, m) {
  // `group` is the name of a process group. The lse is empty unless Softmax.
  m.def(
      "attend_over_ranks(Tensor query, Tensor key, Tensor value, str choices, Tensor?[] arrays, "
      "int[]? numbers, str group, str layout='contiguous', int piece=1024, int candidates=64) "
      "-> (Tensor output, Tensor lse)",
      fovea::over_ranks::operate);
  m.def("stretches_of_rank(int rank, int ranks, str layout) -> int[]",
        [](int64_t rank, int64_t ranks, c10::string_view layout) {
          return fovea::stretches_of_rank(rank, ranks, fovea::over_ranks::layout_of(layout));
        });
}
