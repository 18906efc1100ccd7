// How keys and values go from rank to rank, and their gradients back.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "torch/ranks/plan.h"

namespace fovea::over_ranks {

// What is on its way, of one piece.
class Transfer {
 public:
  Transfer() = default;
  // Sends to one rank and begins to receive from another; either may be nothing.
  Transfer(const Plan& plan, Tensors sent, int64_t to, Tensors received, int64_t from, int tag);
  // Waits, and returns what was received.
  Tensors arrived();

 private:
  Tensors sent_, received_;
  at::Device device_ = at::kCPU;  // where what is received belongs
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

// Visits every piece of every rank: visit(step, piece, held), with the rows of the rank `step` places
// before, or nothing where no row of this rank meets them. Own ones first. The next pieces travel
// meanwhile.
using Visit = std::function<void(int64_t step, Rows piece, const Tensors& held)>;
void go_round(const Plan& plan, const Tensors& own, const Visit& visit);

// Throws in a backward that is to have a graph (create_graph): what goes from rank to rank has none,
// and a second derivative would lack it without a word.
void refuse_second_derivative();

// Adds up the gradients of each rank's rows: those that other ranks find are sent back.
class WayBack {
 public:
  // `sums`, of this rank's rows, are zero at first.
  WayBack(const Plan& plan, Tensors sums) : plan_(plan), sums_(std::move(sums)) {}
  // Called for each step and piece that go_round visits, in that order.
  void add(int64_t step, Rows piece, const Tensors& gradients);
  // Waits for the last; returns the sums.
  const Tensors& finish();

 private:
  void receive();

  const Plan& plan_;
  Tensors sums_;
  std::deque<std::pair<Rows, Transfer>> underway_;
};

}  // namespace fovea::over_ranks
