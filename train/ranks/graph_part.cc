#include "train/ranks/graph_part.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/torch.h>

#include <algorithm>

namespace fovea::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Plan = GraphPart::Plan;

int64_t total(const std::vector<int64_t>& counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

std::vector<int64_t> times(std::vector<int64_t> counts, int64_t width) {
  for (int64_t& count : counts) count *= width;
  return counts;
}

// rows [sum of `sent`, …] -> [sum of `received`, …]
torch::Tensor exchanged(const Plan& plan, const torch::Tensor& rows,
                        const std::vector<int64_t>& received, const std::vector<int64_t>& sent) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes[0] = total(received);
  const torch::Tensor in = rows.to(torch::kCPU).contiguous();
  const torch::Tensor out = torch::empty(sizes, in.options());
  int64_t width = 1;
  for (size_t i = 1; i < sizes.size(); ++i) width *= sizes[i];
  plan.ranks->wait(plan.ranks->exchange(out.view({-1}), times(received, width), in.view({-1}),
                                        times(sent, width)),
                   "the features of neighbours");
  return out.to(rows.device());
}

struct Held : torch::CustomClassHolder {
  explicit Held(std::shared_ptr<const Plan> given) : plan(std::move(given)) {}
  std::shared_ptr<const Plan> plan;
};

class WithNeighbours : public torch::autograd::Function<WithNeighbours> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& own,
                               const c10::intrusive_ptr<Held>& held) {
    const Plan& plan = *held->plan;
    context->saved_data["held"] = c10::IValue::make_capsule(held);
    return torch::cat({own, exchanged(plan, own.index_select(0, plan.sent_rows.to(own.device())),
                                      plan.received, plan.sent)});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held =
        c10::static_intrusive_pointer_cast<Held>(context->saved_data["held"].toCapsule());
    const Plan& plan = *held->plan;
    const torch::Tensor& all = gradients[0];
    const int64_t neighbours = total(plan.received), own = all.size(0) - neighbours;
    const torch::Tensor back =
        exchanged(plan, all.narrow(0, own, neighbours), plan.sent, plan.received);
    // In the order of the ranks, so that the sum is the same in each run.
    return {all.narrow(0, 0, own).index_add(0, plan.sent_rows.to(all.device()), back),
            torch::Tensor()};
  }
};

}  // namespace

GraphPart::GraphPart(const data::Csr& graph, const std::vector<int32_t>& owners, Ranks& ranks) {
  const int32_t self = ranks.rank();
  const auto size = static_cast<size_t>(ranks.size());
  const auto each_edge = [&](const auto& call) {
    for (size_t node = 0; node < owners.size(); ++node)
      for (int32_t e = graph.row_offsets[node]; e < graph.row_offsets[node + 1]; ++e)
        call(node, static_cast<size_t>(graph.columns[static_cast<size_t>(e)]));
  };
  constexpr int32_t kUnknown = -1;
  std::vector<int32_t> column_of(owners.size(), kUnknown);  // of a node, in rows_
  for (size_t node = 0; node < owners.size(); ++node)
    if (owners[node] == self) {
      column_of[node] = static_cast<int32_t>(nodes_.size());
      nodes_.push_back(static_cast<int64_t>(node));
    }
  std::vector<std::vector<int64_t>> wanted(size), needed(size);  // of each other rank, and by it
  each_edge([&](size_t node, size_t seen) {
    const int32_t by = owners[node], holder = owners[seen];
    if (by == holder) return;
    if (by == self) wanted[static_cast<size_t>(holder)].push_back(static_cast<int64_t>(seen));
    if (holder == self) needed[static_cast<size_t>(by)].push_back(static_cast<int64_t>(seen));
  });
  std::vector<int64_t> sent_rows;
  for (size_t rank = 0; rank < size; ++rank) {
    for (auto* list : {&wanted[rank], &needed[rank]}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (const int64_t node : wanted[rank]) {
      column_of[static_cast<size_t>(node)] =
          static_cast<int32_t>(nodes_.size() + neighbours_.size());
      neighbours_.push_back(node);
    }
    for (const int64_t node : needed[rank])
      sent_rows.push_back(column_of[static_cast<size_t>(node)]);
    plan_->received.push_back(static_cast<int64_t>(wanted[rank].size()));
    plan_->sent.push_back(static_cast<int64_t>(needed[rank].size()));
  }
  plan_->ranks = &ranks;
  plan_->sent_rows = torch::tensor(at::ArrayRef<int64_t>(sent_rows), torch::kInt64);
  // A row keeps its order, so that its sums are those of the whole graph, bit for bit.
  rows_.row_offsets.push_back(0);
  for (const int64_t node : nodes_) {
    const auto at = static_cast<size_t>(node);
    for (int32_t e = graph.row_offsets[at]; e < graph.row_offsets[at + 1]; ++e)
      rows_.columns.push_back(
          column_of[static_cast<size_t>(graph.columns[static_cast<size_t>(e)])]);
    rows_.row_offsets.push_back(static_cast<int32_t>(rows_.columns.size()));
  }
}

int64_t GraphPart::number_of(int64_t column) const {
  const auto own = static_cast<int64_t>(nodes_.size());
  return column < own ? nodes_[static_cast<size_t>(column)]
                      : neighbours_[static_cast<size_t>(column - own)];
}

int64_t GraphPart::place_of(int64_t node) const {
  const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), node);
  return found != nodes_.end() && *found == node ? found - nodes_.begin() : -1;
}

torch::Tensor GraphPart::with_neighbours(const torch::Tensor& own) const {
  return WithNeighbours::apply(own, c10::make_intrusive<Held>(plan_));
}

torch::Tensor GraphPart::rows_of(const std::vector<int64_t>& wanted,
                                 const torch::Tensor& own) const {
  const torch::Tensor rows = own.detach().to(torch::kCPU);
  torch::Tensor out =
      torch::zeros({static_cast<int64_t>(wanted.size()), rows.size(1)}, rows.options());
  if (wanted.empty()) return out.to(own.device());
  std::vector<int64_t> from, to;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (const int64_t place = place_of(wanted[i]); place >= 0) {
      from.push_back(place);
      to.push_back(static_cast<int64_t>(i));
    }
  out.index_copy_(0, torch::tensor(at::ArrayRef<int64_t>(to), torch::kInt64),
                  rows.index_select(0, torch::tensor(at::ArrayRef<int64_t>(from), torch::kInt64)));
  // One rank has a row, and the others add zeros.
  ranks().wait(ranks().sum(out), "the nodes of other ranks");
  return out.to(own.device());
}

}  // namespace fovea::train
