// Attention on a sequence that is too long for one machine: each rank of a process group of
// libtorch's c10d holds some of its rows.
//
//   auto out = fovea::attend_over_ranks(query, key, value, group, {.structure = fovea::Causal{}},
//                                       {.layout = fovea::Layout::kZigzag});
//
// Every rank calls it with its own rows, query [B, H, L / ranks, E], key and value [B, Hkv,
// L / ranks, E], as many on every rank, and gets the output of its own queries. Differentiable, once;
// the gradient of an array of the choices is that of this rank's queries, and the sum over ranks is
// that of the whole call. On the CPU, or on CUDA devices with a group of NCCL, or of Gloo by way of
// the host.
//
// Scores whose arrays, if any, are of no row: not Location, Bias, EdgeBias, Relative or Custom.
// Dense, Causal, Window, Documents (ids of this rank's rows) and what &, | and ~ make of them.
// Softmax, KernelRatio, Unnormalised, Uniform, Sigmoid; with Dot alone also Sparsemax, Entmax, TopK
// and Hard, for which keys go round twice, on the CPU. InvalidArgument names what else is given.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstdint>
#include <vector>

#include "fovea/attend.h"

namespace fovea {

// Which rows a rank holds. Contiguous: one stretch. Zigzag: of twice as many stretches as ranks, the
// one of its own number, and that number counted from the end; under Causal all ranks then have the
// same work.
enum class Layout : uint8_t { kContiguous, kZigzag };
// The numbers of a rank's stretches in the whole sequence.
std::vector<int64_t> stretches_of_rank(int64_t rank, int64_t ranks, Layout layout);

struct RankOptions {
  Layout layout = Layout::kContiguous;
  int64_t piece = 1024;  // rows of keys that travel together
  int64_t candidates =
      64;  // scores of a row that a threshold keeps at first; doubled where too few
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
