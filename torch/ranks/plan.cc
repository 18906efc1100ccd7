#include "torch/ranks/plan.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace fovea::over_ranks {
namespace {

// Queries that meet a piece of keys at once, for each of its keys: partial results take little memory,
// and what a call costs does not count.
constexpr int64_t kQueriesPerKey = 4;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;

Reach reach_of(const Structure& structure);

template <class Kind>
Reach reach_of_kind(const Kind& kind) {
  if constexpr (std::is_same_v<Kind, Causal>) return {kFar, 0};
  if constexpr (std::is_same_v<Kind, Window>)
    return {kind.left < 0 ? kFar : kind.left, kind.right < 0 ? kFar : kind.right};
  if constexpr (std::is_same_v<Kind, AnyOf>) {
    Reach widest{-kFar, -kFar};
    for (const Structure& part : kind.parts) {
      const Reach reach = reach_of(part);
      widest = {std::max(widest.before, reach.before), std::max(widest.after, reach.after)};
    }
    return widest;
  }
  return {kFar, kFar};
}

Reach reach_of(const Structure& structure) {
  Reach narrowest{kFar, kFar};
  for (const auto& one : structure.all_of) {
    const Reach reach = std::visit([](const auto& kind) { return reach_of_kind(kind); }, one);
    narrowest = {std::min(narrowest.before, reach.before), std::min(narrowest.after, reach.after)};
  }
  return narrowest;
}

// Gloo's messages between two ranks read the memory of the host.
at::Device carrier_of(const ProcessGroup& group, const at::Device& device) {
  if (device.is_cpu() || group->getBackend(device.type())->getBackendName() == "gloo")
    return at::kCPU;
  return device;
}

// What every rank gives, on all, where it was.
Tensors gathered(const ProcessGroup& group, const at::Device& carrier, const Tensor& own) {
  Tensors given = {own.to(carrier)};
  std::vector<Tensors> all(1);
  for (int rank = 0; rank < group->getSize(); ++rank) all[0].push_back(at::empty_like(given[0]));
  group->allgather(all, given)->wait();
  for (Tensor& one : all[0]) one = one.to(own.device());
  return std::move(all[0]);
}

// A rank that received more or less than it has room for would end without a word.
void check_alike(const ProcessGroup& group, const at::Device& carrier, const Tensor& query,
                 const Tensor& key, const Tensor& value, const RankOptions& options) {
  const std::pair<const char*, int64_t> facts[] = {
      {"query: rows", query.size(2)},
      {"query: batch size", query.size(0)},
      {"key: heads", key.size(1)},
      {"key: width", key.size(3)},
      {"value: heads", value.size(1)},
      {"value: width", value.size(3)},
      {"key: type (as a number)", static_cast<int64_t>(key.scalar_type())},
      {"value: type (as a number)", static_cast<int64_t>(value.scalar_type())},
      {"layout (as a number)", static_cast<int64_t>(options.layout)},
      {"piece", options.piece}};
  std::vector<int64_t> own;
  for (const auto& [name, number] : facts) own.push_back(number);
  const Tensors all = gathered(group, carrier, at::tensor(own, at::kLong));
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (size_t n = 0; n < own.size(); ++n) {
      const auto at = static_cast<int64_t>(n);
      const int64_t theirs = all[rank][at].item<int64_t>(), first = all[0][at].item<int64_t>();
      if (theirs != first)
        throw InvalidArgument(std::string(facts[n].first) + " " + std::to_string(theirs) +
                              " on rank " + std::to_string(rank) + ", expected " +
                              std::to_string(first) + " (rank 0's)");
    }
}

Tensor ids_of(const Tensor& ids, Rows rows) { return ids.narrow(-1, rows.first, rows.count); }

}  // namespace

Plan::Plan(const Tensor& query, const Tensor& key, const Tensor& value, const Structure& structure,
           const ProcessGroup& group, const RankOptions& options)
    : group_(group),
      carrier_(carrier_of(group, query.device())),
      rank_(group->getRank()),
      ranks_(group->getSize()),
      rows_(query.size(2)),
      stretch_(0),
      piece_(options.piece),
      layout_(options.layout),
      reach_(reach_of(structure)) {
  if (key.size(2) != rows_ || rows_ % stretches() != 0)
    throw InvalidArgument(
        "query: " + std::to_string(rows_) + " rows and key " + std::to_string(key.size(2)) +
        ", expected as many of each, a multiple of " + std::to_string(stretches()) +
        (layout_ == Layout::kZigzag ? " (zigzag)" : " (contiguous)"));
  check_alike(group_, carrier_, query, key, value, options);
  stretch_ = rows_ / stretches();
  choice::each_kind(structure, [&]<class Kind>(const Kind& kind) {
    if constexpr (std::is_same_v<Kind, Documents>) {
      if (!key_ids_.empty()) throw InvalidArgument("structure: Documents twice, expected once");
      key_ids_ = gathered(group_, carrier_, kind.key_ids.contiguous());
    }
  });
}

// One of each stretch in turn: in the zigzag layout under Causal one rank's work is all in the pieces of
// the first stretch and another's in those of both, so in the order of the rows each would wait for the
// other.
std::vector<Rows> Plan::pieces() const {
  std::vector<Rows> out;
  for (int64_t at = 0; at < stretch_; at += piece_)
    for (int64_t n = 0; n < stretches(); ++n)
      out.push_back({n * stretch_ + at, std::min(piece_, stretch_ - at)});
  return out;
}

int64_t Plan::position(int64_t rank, Rows piece) const {
  return stretches_of_rank(rank, ranks_, layout_)[static_cast<size_t>(piece.first / stretch_)] *
             stretch_ +
         piece.first % stretch_;
}

std::vector<Plan::Meeting> Plan::meetings(int64_t queries, int64_t keys, Rows piece) const {
  const int64_t block = kQueriesPerKey * piece_, first_key = position(keys, piece);
  std::vector<Meeting> out;
  int64_t own = 0;
  for (const int64_t number : stretches_of_rank(queries, ranks_, layout_)) {
    for (int64_t at = 0; at < stretch_; at += block) {
      const int64_t count = std::min(block, stretch_ - at);
      const int64_t offset = number * stretch_ + at - first_key;
      // Of a key's position minus a query's.
      const int64_t least = -offset - (count - 1), most = -offset + piece.count - 1;
      if (most >= -reach_.before && least <= reach_.after)
        out.push_back({{own + at, count}, offset});
    }
    own += stretch_;
  }
  return out;
}

Structure Plan::between(Structure given, Rows own, int64_t keys, Rows piece) const {
  choice::each_kind(given, [&]<class Kind>(Kind& kind) {
    if constexpr (std::is_same_v<Kind, Documents>) {
      kind.query_ids = ids_of(kind.query_ids, own);
      kind.key_ids = ids_of(key_ids_[static_cast<size_t>(keys)], piece);
    }
  });
  return given;
}

}  // namespace fovea::over_ranks
