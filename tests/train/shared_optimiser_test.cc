// An optimiser's steps that ranks divide, each rank a thread, against one that makes them alone.
#include "train/descent/shared_optimiser.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

#include "train/descent/divided.h"
#include "train/ranks/local_store.h"

namespace fovea::train {
namespace {

constexpr int64_t kItems = 12, kParts = 6;

// Two types, an order of memory that is not that of the rows, and a parameter without a gradient.
struct MixedNet : torch::nn::Module {
  MixedNet() {
    wide = register_parameter("wide", numbers({5, 40}).t());
    small = register_parameter("small", numbers({40}).to(torch::kFloat64));
    large = register_parameter("large", numbers({40, 70}));
    unused = register_parameter("unused", torch::ones({3}));
    state = register_buffer("state", torch::zeros({2}));
  }
  // Without a generator, which threads would share.
  static torch::Tensor numbers(at::IntArrayRef sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return torch::sin(torch::arange(count) * 0.7).reshape(sizes);
  }
  Loss loss_of(const Batch& batch) {
    state.add_(1);
    std::vector<torch::Tensor> losses;
    for (const int64_t item : batch.items) {
      const torch::Tensor row =
          torch::sin(torch::arange(40) * (0.1 + static_cast<double>(item))).unsqueeze(0);
      losses.push_back((torch::tanh(row.matmul(wide)).sum() + (row * small).sum() +
                        torch::tanh(row.matmul(large)).square().sum()));
    }
    return {torch::stack(losses).mean(), static_cast<int64_t>(batch.items.size())};
  }
  std::vector<ParameterGroup> groups() {
    return {{.parameters = {wide, small}},
            {.parameters = {large, unused}, .rate_factor = 0.5, .weight_decay = 0}};
  }
  torch::Tensor wide, small, large, unused, state;
};

// One that trains: alone, or as one of several ranks.
struct Trainer {
  Trainer(const Recipe& recipe, Ranks* ranks)
      : recipe(recipe),
        divided(net, {net.wide, net.small, net.large, net.unused}, {.parts = kParts}, ranks,
                ItemsOfPart::kStretch,
                ranks ? SharedOptimiser::bytes_of(net.groups(), ranks->size()) : 0) {
    if (!ranks) {
      updates = std::make_unique<Optimiser>(net.groups(), recipe);
      return;
    }
    if (!divided.sums().in_shared_memory()) throw std::runtime_error("no shared memory");
    auto shared = std::make_unique<SharedOptimiser>(net.groups(), recipe, divided.sums(), *ranks);
    divided.leave_gradients_of(shared->own());
    own = shared->own();
    updates = std::move(shared);
  }
  void find_gradient() {
    std::vector<int64_t> items(kItems);
    std::iota(items.begin(), items.end(), 0);
    updates->zero_grad();
    divided.compute(
        {items, 1, 0}, [&](const Batch& batch) { return net.loss_of(batch); }, "step");
  }
  void step() {
    find_gradient();
    updates->make(0.7, recipe.clip, "step");
  }
  // All that a later step follows from.
  std::map<std::string, torch::Tensor> all() const {
    auto out = updates->state();
    for (const auto& item : net.named_parameters()) out[item.key()] = item.value();
    for (const auto& item : net.named_buffers()) out[item.key()] = item.value();
    for (auto& [name, tensor] : out) tensor = tensor.detach().clone();
    return out;
  }
  MixedNet net;
  Recipe recipe;
  DividedGradient divided;
  std::vector<bool> own;
  std::unique_ptr<Updates> updates;
};

using OfRank = std::function<void(Ranks&)>;
// What each rank throws, or nothing.
std::vector<std::exception_ptr> on_ranks(int size, double timeout, const OfRank& work) {
  const LocalStore store;
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Ranks ranks({.rank = rank,
                     .size = size,
                     .address = "127.0.0.1",
                     .port = store.port(),
                     .store_is_launchers = true},
                    timeout);
        work(ranks);
        ranks.gather("", "the others' end");
      } catch (...) {
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

void expect_same(const std::map<std::string, torch::Tensor>& got,
                 const std::map<std::string, torch::Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(torch::equal(got.at(name), tensor)) << name;
}

Recipe recipe_with(const std::string& name) {
  return {.optimiser = name, .rate = 0.05, .momentum = 0.9, .weight_decay = 0.01, .clip = 0.5};
}

TEST(SharedOptimiser, HasTheBitsOfOneThatStepsAlone) {
  for (const std::string name : {"sgd", "adam", "adamw", "adagrad", "rmsprop", "adadelta"})
    for (const int size : {2, 3}) {
      SCOPED_TRACE(name + " " + std::to_string(size));
      Trainer alone(recipe_with(name), nullptr);
      for (int step = 0; step < 4; ++step) alone.step();
      const auto expected = alone.all();
      EXPECT_FALSE(torch::equal(expected.at("wide"), MixedNet().wide));
      std::vector<std::map<std::string, torch::Tensor>> found(static_cast<size_t>(size));
      std::vector<int64_t> owned(4);
      std::mutex one_at_a_time;
      const auto thrown = on_ranks(size, 60, [&](Ranks& ranks) {
        Trainer one(recipe_with(name), &ranks);
        one.step();
        // As a training that is continued from a file of a step.
        const auto state = one.all();
        ranks.gather("", "the others' state");
        one.updates->restore(state);
        for (int step = 1; step < 4; ++step) one.step();
        found[static_cast<size_t>(ranks.rank())] = one.all();
        const std::lock_guard lock(one_at_a_time);
        for (size_t i = 0; i < owned.size(); ++i) owned[i] += one.own[i];
      });
      for (const std::exception_ptr& one : thrown)
        if (one) std::rethrow_exception(one);
      for (const auto& of_rank : found) expect_same(of_rank, expected);
      EXPECT_EQ(owned, std::vector<int64_t>(4, 1));
    }
}

// Each rank has found the gradient; one ends before it has done its share of the step.
TEST(SharedOptimiser, AStepWithoutARankChangesNothing) {
  std::map<std::string, torch::Tensor> before, after;
  for (const double clip : {0.0, 0.5}) {
    SCOPED_TRACE(clip);
    Recipe recipe = recipe_with("adam");
    recipe.clip = clip;
    const auto thrown = on_ranks(3, 3, [&](Ranks& ranks) {
      Trainer one(recipe, &ranks);
      one.step();
      if (ranks.first()) before = one.all();
      one.find_gradient();
      if (ranks.rank() == 1) throw std::runtime_error("this one ends");
      try {
        one.updates->make(0.7, recipe.clip, "step 2");
      } catch (const RankLost&) {
        one.divided.take_back();
        if (ranks.first()) after = one.all();
        throw;
      }
    });
    for (const size_t rank : {0u, 2u}) EXPECT_THROW(std::rethrow_exception(thrown[rank]), RankLost);
    expect_same(after, before);
  }
}

}  // namespace
}  // namespace fovea::train
