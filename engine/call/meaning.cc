#include "engine/call/meaning.h"

#include <algorithm>
#include <array>

#include "engine/call/facts.h"

namespace fovea::engine {
namespace {

template <class Choice, class Variant>
bool is(const Variant& variant) {
  return std::holds_alternative<Choice>(variant);
}

bool takes_value(const Normaliser& n) { return is<KernelRatio>(n) || is<Unnormalised>(n); }

template <class Choice>
bool has_modifier(const Problem& p) {
  return std::any_of(p.score.modifiers.begin(), p.score.modifiers.end(), is<Choice, Modifier>);
}

template <class Choice>
bool has_structure(const Problem& p) {
  return std::any_of(p.structure.all_of.begin(), p.structure.all_of.end(),
                     is<Choice, choice::StructureKind<View>>);
}

// Inside AnyOf or Not.
bool packs_inside(const Problem& p) {
  size_t inside = 0, outside = 0;
  choice::each_kind(p.structure,
                    [&]<class Kind>(const Kind&) { inside += choice::kSaysLayout<View, Kind>; });
  for (const auto& part : p.structure.all_of) {
    std::visit([&]<class Kind>(const Kind&) { outside += choice::kSaysLayout<View, Kind>; }, part);
  }
  return inside > outside;
}

bool is_silverman(const Problem& p) {
  const auto* kernel = std::get_if<Kernel>(&p.score.kind);
  return kernel && kernel->name == choice::KernelName::kSilverman;
}

bool has_query_offset(const Problem& p) {
  return p.query_offset.number != 0 || p.query_offset.each;
}

// Relative positions, then the soft cap, then the rest.
bool out_of_order(const Problem& p) {
  int reached = 0;
  for (const Modifier& m : p.score.modifiers) {
    const int rank = is<Relative>(m) ? 0 : is<SoftCap>(m) ? 1 : 2;
    if (rank < reached) return true;
    reached = rank;
  }
  return false;
}

constexpr std::array kRefusals = {
    Refusal{
        "silverman kernel with a normaliser of log-scores",
        "Silverman's kernel goes negative and has no logarithm; use kernel_ratio or unnormalised",
        [](const Problem& p) { return is_silverman(p) && !takes_value(p.normaliser); }},
    Refusal{"relative positions on a score other than dot",
            "relative key tables are added to the keys of a dot product",
            [](const Problem& p) { return has_modifier<Relative>(p) && !is<Dot>(p.score.kind); }},
    Refusal{
        "modifiers out of order",
        "the order is relative positions, then the soft cap, then bias, ALiBi and custom functions",
        out_of_order},
    Refusal{"ragged with graph",
            "both say how packed tensors are divided; a graph's rows are queries of one packed "
            "sequence",
            [](const Problem& p) { return has_structure<Ragged>(p) && has_structure<Graph>(p); }},
    Refusal{"paged with ragged or graph",
            "they say in different ways where keys lie; a batch of sequences in pages has lengths",
            [](const Problem& p) {
              return has_structure<Paged>(p) &&
                     (has_structure<Ragged>(p) || has_structure<Graph>(p));
            }},
    Refusal{"key_lengths with paged", "the lengths of keys in pages are the structure's own",
            [](const Problem& p) { return p.key_lengths && has_structure<Paged>(p); }},
    Refusal{"edge_bias without a graph", "it has a number for each edge of the structure graph",
            [](const Problem& p) { return has_modifier<EdgeBias>(p) && !has_structure<Graph>(p); }},
    Refusal{"ragged, graph or paged inside a union or a complement",
            "they say how tensors lie in memory, which does not differ from pair to pair; a "
            "conjunction with them is allowed",
            packs_inside},
    Refusal{
        "query_offset with causal to the bottom right",
        "the bottom right says where the queries stand, at the last keys; use causal to the top "
        "left with an offset",
        [](const Problem& p) { return has_query_offset(p) && has_bottom_right(p.structure); }},
};

}  // namespace

std::span<const Refusal> refusals() { return kRefusals; }

void check_meaning(const Problem& problem) {
  std::string reasons;
  for (const Refusal& refusal : kRefusals) {
    if (refusal.applies(problem))
      reasons += (reasons.empty() ? "" : "; ") + std::string(refusal.what) + ": " + refusal.reason;
  }
  if (!reasons.empty()) throw Unsupported(reasons);
}

}  // namespace fovea::engine
