// Attention on a sequence that is too long for one machine: each rank of a process group of
// libtorch's c10d holds some of its rows.
//
//   auto out = fovea::attend_over_ranks(query, key, value, group, {.structure = fovea::Causal{}},
//                                       {.layout = fovea::Layout::kZigzag});
//
// Every rank calls it with its own rows: query [B, H, L / ranks, E], key and value [B, Hkv,
// L / ranks, E], the same number on every rank. It returns the output of the rank's own queries.
// First derivatives only. The gradient of an array in the choices is that of this rank's queries; the
// sum over ranks is the gradient of the whole call. On the CPU, or on CUDA devices with a group of
// NCCL, or of Gloo by way of the host.
//
// Scores: all but Location, and no modifier Bias, EdgeBias, Relative or Custom, because their arrays
// have a row for each query or key.
// Structures: Dense, Causal, Window, Documents (ids of this rank's rows), joined by &, | and ~.
// Normalisers: Softmax, KernelRatio, Unnormalised, Uniform, Sigmoid; with the score Dot also
// Sparsemax, Entmax, TopK and Hard, for which keys are exchanged twice, on the CPU only.
// Anything else throws InvalidArgument, which names it.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstdint>
#include <vector>

#include "fovea/attend.h"

namespace fovea {

// Which rows a rank holds. Contiguous: one stretch of the sequence. Zigzag: the sequence is cut into
// 2 * ranks stretches, and rank r holds stretch r and stretch 2 * ranks - 1 - r. Then all ranks have
// the same work under Causal.
enum class Layout : uint8_t { kContiguous, kZigzag };
// The numbers of a rank's stretches in the whole sequence.
std::vector<int64_t> stretches_of_rank(int64_t rank, int64_t ranks, Layout layout);

struct RankOptions {
  Layout layout = Layout::kContiguous;
  int64_t piece = 1024;  // rows of keys that travel together
  int64_t candidates =
      64;  // largest scores of a row that Sparsemax and the like keep at first; doubled if too few
};

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;
at::Tensor attend_over_ranks(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const ProcessGroup& group,
                             const Choices& choices = {}, const RankOptions& options = {});

struct AttendedOverRanks {
  at::Tensor output;
  at::Tensor lse;  // [B, H, L / ranks]; undefined unless Softmax
};
// The same call, which also returns the log-sum-exp.
AttendedOverRanks attend_over_ranks_full(const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& value, const ProcessGroup& group,
                                         const Choices& choices = {},
                                         const RankOptions& options = {});

}  // namespace fovea
