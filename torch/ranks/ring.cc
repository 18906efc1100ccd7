#include "torch/ranks/ring.h"

#include <ATen/ATen.h>

#include <utility>

namespace fovea::over_ranks {
namespace {

bool meet(const Plan& plan, int64_t queries, int64_t keys, Rows piece) {
  return !plan.meetings(queries, keys, piece).empty();
}

Tensors room_for(const Tensors& tensors, Rows piece) {
  Tensors out;
  for (const Tensor& t : tensors)
    out.push_back(at::empty({t.size(0), t.size(1), piece.count, t.size(3)}, t.options()));
  return out;
}

// Tags of what goes on and of what comes back differ, because both may be underway.
constexpr int kForward = 0, kBack = 16;
// Pieces that travel at once. One piece takes one rank twice as long as another, which has as much work in
// the next: with two underway neither waits.
constexpr size_t kUnderway = 2;

Transfer pass_on(const Plan& plan, const Tensors& own, int64_t step, Rows piece) {
  const int64_t to = (plan.rank() + step) % plan.ranks(), from = plan.before(step);
  Tensors sent, received;
  if (meet(plan, to, plan.rank(), piece))
    for (const Tensor& t : own) sent.push_back(piece.of(t).contiguous());
  if (meet(plan, plan.rank(), from, piece)) received = room_for(own, piece);
  return {plan, std::move(sent), to, std::move(received), from, kForward};
}

}  // namespace

Transfer::Transfer(const Plan& plan, Tensors sent, int64_t to, Tensors received, int64_t from,
                   int tag)
    : sent_(std::move(sent)), received_(std::move(received)) {
  if (sent_.empty() && received_.empty()) return;
  const at::Device carrier = plan.carrier();
  device_ = (sent_.empty() ? received_ : sent_)[0].device();
  for (Tensor& t : sent_) t = t.to(carrier);
  if (device_ != carrier)
    for (Tensor& t : received_) t = at::empty(t.sizes(), t.options().device(carrier));
  // NCCL would wait in a send for the other's receive, which comes after its own send, unless both are
  // given at once.
  const bool at_once = !carrier.is_cpu();
  if (at_once) plan.group()->startCoalescing(carrier.type());
  for (size_t n = 0; n < sent_.size(); ++n) {
    Tensors one = {sent_[n]};
    works_.push_back(plan.group()->send(one, static_cast<int>(to), tag + static_cast<int>(n)));
  }
  for (size_t n = 0; n < received_.size(); ++n) {
    Tensors one = {received_[n]};
    works_.push_back(plan.group()->recv(one, static_cast<int>(from), tag + static_cast<int>(n)));
  }
  if (at_once) works_ = {plan.group()->endCoalescing(carrier.type())};
}

Tensors Transfer::arrived() {
  for (const auto& work : works_)
    if (work) work->wait();
  works_.clear();
  sent_.clear();
  for (Tensor& t : received_) t = t.to(device_);
  return std::exchange(received_, {});
}

void go_round(const Plan& plan, const Tensors& own, const Visit& visit) {
  struct Stop {
    int64_t step;
    Rows piece;
  };
  std::vector<Stop> stops;
  for (int64_t step = 0; step < plan.ranks(); ++step)
    for (const Rows piece : plan.pieces()) stops.push_back({step, piece});
  std::deque<Transfer> underway;
  size_t next = plan.pieces().size();  // the first stop whose piece is another rank's
  const size_t own_stops = next;
  for (size_t at = 0; at < stops.size(); ++at) {
    const auto [step, piece] = stops[at];
    Tensors held;
    if (at < own_stops) {
      for (const Tensor& t : own) held.push_back(piece.of(t));
    } else {
      held = underway.front().arrived();
      underway.pop_front();
    }
    for (; next < stops.size() && next <= at + kUnderway; ++next)
      underway.push_back(pass_on(plan, own, stops[next].step, stops[next].piece));
    visit(step, piece, held);
  }
}

void WayBack::add(int64_t step, Rows piece, const Tensors& gradients) {
  if (step == 0) {
    for (size_t n = 0; n < gradients.size(); ++n) piece.of(sums_[n]).add_(gradients[n]);
    return;
  }
  if (underway_.size() == kUnderway) receive();
  const int64_t to = plan_.before(step), from = (plan_.rank() + step) % plan_.ranks();
  Tensors received;
  if (meet(plan_, from, plan_.rank(), piece)) received = room_for(sums_, piece);
  underway_.emplace_back(piece, Transfer(plan_, gradients, to, std::move(received), from, kBack));
}

void WayBack::receive() {
  auto& [piece, transfer] = underway_.front();
  const Tensors received = transfer.arrived();
  for (size_t n = 0; n < received.size(); ++n) piece.of(sums_[n]).add_(received[n]);
  underway_.pop_front();
}

const Tensors& WayBack::finish() {
  while (!underway_.empty()) receive();
  return sums_;
}

void refuse_second_derivative() {
  if (at::GradMode::is_enabled()) {
    throw Unsupported(
        "attend_over_ranks: a gradient with a graph was asked for (create_graph), expected first "
        "derivatives only");
  }
}

}  // namespace fovea::over_ranks
