// attend_over_ranks from C++: threads are the ranks, joined by c10d's Gloo over loopback, and each
// compares its part with the whole call. tests/python/ranks has more choices, with processes.
#include "fovea/ranks.h"

#define USE_C10D_GLOO  // libtorch has it; its headers ask
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/torch.h>

#include <functional>
#include <thread>

namespace fovea {
namespace {

using torch::Tensor;

constexpr int64_t kRows = 48;

ProcessGroup group_of(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks) {
  const auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  options->timeout = std::chrono::seconds(30);
  const auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, ranks);
  group->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options));
  return group;
}

// Calls `work` on every rank; an exception of one is thrown here.
void on_ranks(int ranks, const std::function<void(const ProcessGroup&)>& work) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(group_of(store, rank, ranks));
      } catch (...) {
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : thrown)
    if (one) std::rethrow_exception(one);
}

Tensor part_of(const Tensor& whole, const ProcessGroup& group, Layout layout, int64_t dim = 2) {
  const auto numbers = stretches_of_rank(group->getRank(), group->getSize(), layout);
  const auto parts =
      whole.detach().chunk(group->getSize() * static_cast<int64_t>(numbers.size()), dim);
  std::vector<Tensor> own;
  for (const int64_t number : numbers) own.push_back(parts[static_cast<size_t>(number)]);
  return torch::cat(own, dim).clone();
}

// The choices, given the ids of some rows.
using ChoicesOf = std::function<Choices(const Tensor& ids)>;

struct Case {
  const char* name;
  ChoicesOf choices;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"dense", [](const Tensor&) { return Choices{}; }},
      {"causal", [](const Tensor&) { return Choices{.structure = Causal{}}; }},
      {"window", [](const Tensor&) { return Choices{.structure = Window{.left = 5, .right = 2}}; }},
      {"documents",
       [](const Tensor& ids) {
         return Choices{.structure = Documents{ids, ids} & Causal{}};
       }},
      {"kernel ratio",
       [](const Tensor&) {
         return Choices{.score = Kernel{.bandwidth = torch::full({1}, 2.0, torch::kFloat64)},
                        .normaliser = KernelRatio{}};
       }},
      {"uniform",
       [](const Tensor&) { return Choices{.normaliser = Uniform{}, .structure = Causal{}}; }},
      {"sparsemax",
       [](const Tensor&) { return Choices{.normaliser = Sparsemax{}, .structure = Causal{}}; }},
      {"entmax", [](const Tensor&) { return Choices{.normaliser = Entmax{.alpha = 1.3}}; }},
      {"top-k", [](const Tensor&) { return Choices{.normaliser = TopK{.k = 3}}; }},
  };
  return all;
}

// Output and gradients of query, key and value.
std::vector<Tensor> computed(const std::vector<Tensor>& leaves, const Tensor& d_output,
                             const std::function<Tensor()>& attended) {
  const Tensor output = attended();
  (output * d_output).sum().backward();
  std::vector<Tensor> out = {output.detach()};
  for (const Tensor& leaf : leaves)  // a uniform mean has no gradient of query and key
    out.push_back(leaf.grad().defined() ? leaf.grad() : torch::zeros_like(leaf));
  return out;
}

TEST(AttendOverRanks, EveryRankHasItsPartOfTheWhole) {
  const RankOptions small{.piece = 5, .candidates = 4};  // several pieces, and too few candidates
  for (const Case& one : cases())
    for (const Layout layout : {Layout::kContiguous, Layout::kZigzag})
      for (const int ranks : {1, 2, 3}) {
        torch::manual_seed(1);
        std::vector<Tensor> whole;
        for (const int64_t heads : {4, 2, 2})
          whole.push_back(torch::randn({2, heads, kRows, 8}, torch::kFloat64).requires_grad_());
        const Tensor ids = torch::arange(kRows, torch::kInt32).floor_divide(7).to(torch::kInt32);
        const Tensor d_output = torch::randn({2, 4, kRows, 8}, torch::kFloat64);
        const auto expected = computed(whole, d_output, [&] {
          return attend(whole[0], whole[1], whole[2], one.choices(ids));
        });
        on_ranks(ranks, [&](const ProcessGroup& group) {
          std::vector<Tensor> own;
          for (const Tensor& t : whole) own.push_back(part_of(t, group, layout).requires_grad_());
          RankOptions options = small;
          options.layout = layout;
          const auto found = computed(own, part_of(d_output, group, layout), [&] {
            return attend_over_ranks(own[0], own[1], own[2], group,
                                     one.choices(part_of(ids, group, layout, 0)), options);
          });
          for (size_t n = 0; n < found.size(); ++n)
            EXPECT_LT((found[n] - part_of(expected[n], group, layout)).abs().max().item<double>(),
                      1e-11)
                << one.name << ", tensor " << n << ", rank " << group->getRank() << " of " << ranks;
        });
      }
}

TEST(AttendOverRanks, TheLogSumExpIsThatOfAllKeys) {
  const Tensor rows = torch::randn({1, 2, kRows, 8});
  const Choices choices{.normaliser = Softmax{torch::tensor({0.5F, -1.0F})}, .structure = Causal{}};
  const Attended whole = attend_full(rows, rows, rows, choices);
  on_ranks(2, [&](const ProcessGroup& group) {
    const Tensor own = part_of(rows, group, Layout::kContiguous);
    const auto found = attend_over_ranks_full(own, own, own, group, choices);
    const Tensor lse = part_of(whole.lse, group, Layout::kContiguous);
    EXPECT_TRUE(torch::allclose(found.lse, lse, 1e-5, 1e-5));
    EXPECT_TRUE(torch::allclose(found.output, part_of(whole.output, group, Layout::kContiguous),
                                1e-5, 1e-5));
  });
}

TEST(AttendOverRanks, WhatItCannotDoIsNamed) {
  const auto refused = [](const Tensor& rows, const Choices& choices, const RankOptions& options) {
    try {
      on_ranks(1, [&](const ProcessGroup& group) {
        attend_over_ranks(rows, rows, rows, group, choices, options);
      });
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const Tensor rows = torch::randn({1, 2, 15, 8});
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  EXPECT_PRED2(has, refused(rows, {.structure = Prefix{3}}, {}),
               "structure: prefix, expected dense");
  EXPECT_PRED2(has, refused(rows, {.normaliser = Hard{.sample = true}}, {}), "hard with sample");
  EXPECT_PRED2(has, refused(rows, {}, {.layout = Layout::kZigzag}), "15 rows and key 15");
  EXPECT_PRED2(has, refused(rows, {}, {.piece = 0}), "piece: 0, expected at least 1");
  EXPECT_PRED2(has, refused(rows[0], {}, {}), "query: 3 dimensions, expected 4");
}

TEST(AttendOverRanks, RanksThatDifferAreNamed) {
  EXPECT_THROW(
      {
        try {
          on_ranks(2, [](const ProcessGroup& group) {
            const Tensor own = torch::randn({1, 2, group->getRank() == 0 ? 8 : 6, 8});
            attend_over_ranks(own, own, own, group);
          });
        } catch (const InvalidArgument& error) {
          EXPECT_STREQ(error.what(), "query: rows 6 on rank 1, expected 8 (rank 0's)");
          throw;
        }
      },
      InvalidArgument);
}

}  // namespace
}  // namespace fovea
