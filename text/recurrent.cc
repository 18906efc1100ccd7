#include "text/recurrent.h"

#include <ATen/ATen.h>
#include <torch/nn/utils/rnn.h>

#include <algorithm>
#include <numeric>

namespace fovea::text {
namespace {

namespace rnn = torch::nn::utils::rnn;

// The order in which libtorch's cells read packed sequences: step after step, the longest sequence first.
struct Order {
  std::vector<int64_t> sequences;   // that have items, longest first; equal ones as they came
  std::vector<int64_t> read;        // position in the packed input of each step's items
  std::vector<int64_t> back;        // where each input item stands in that reading
  std::vector<int64_t> batch_sizes; // sequences that are still running, for each step
};

Order order_of(const at::Tensor& offsets) {
  const at::Tensor on_cpu = offsets.to(at::kCPU, at::kLong).contiguous();
  const int64_t* at = on_cpu.data_ptr<int64_t>();
  const int64_t items = on_cpu.size(0) - 1;
  const auto length = [&](int64_t i) { return at[i + 1] - at[i]; };
  Order out;
  for (int64_t i = 0; i < items; ++i)
    if (length(i) > 0) out.sequences.push_back(i);
  std::stable_sort(out.sequences.begin(), out.sequences.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  out.back.resize(static_cast<size_t>(at[items]));
  size_t running = out.sequences.size();
  for (int64_t step = 0; running > 0; ++step) {
    while (running > 0 && length(out.sequences[running - 1]) <= step) --running;
    if (running == 0) break;
    out.batch_sizes.push_back(static_cast<int64_t>(running));
    for (size_t r = 0; r < running; ++r) {
      const int64_t place = at[out.sequences[r]] + step;
      out.back[static_cast<size_t>(place)] = static_cast<int64_t>(out.read.size());
      out.read.push_back(place);
    }
  }
  return out;
}

}  // namespace

Walked walk(nn::Recurrent& encoder, const at::Tensor& x, const at::Tensor& offsets) {
  const int64_t items = offsets.size(0) - 1, width = encoder->state_width();
  const auto child = encoder->named_children()["rnn"];
  const auto gru = std::dynamic_pointer_cast<torch::nn::GRUImpl>(child);
  const auto lstm = std::dynamic_pointer_cast<torch::nn::LSTMImpl>(child);
  const bool both = gru ? gru->options.bidirectional() : lstm->options.bidirectional();
  const int64_t one = both ? width / 2 : width;
  if (x.size(0) == 0) return {at::zeros({0, width}, x.options()), at::zeros({items, one}, x.options())};

  const Order order = order_of(offsets);
  const at::Tensor read = at::tensor(order.read, at::kLong).to(x.device()), back = at::tensor(order.back, at::kLong).to(x.device());
  const rnn::PackedSequence packed(x.index_select(0, read), at::tensor(order.batch_sizes, at::kLong));
  at::Tensor states, hidden;
  if (gru) {
    const auto [out, last] = gru->forward_with_packed_input(packed);
    states = out.data();
    hidden = last;
  } else {
    const auto [out, last] = lstm->forward_with_packed_input(packed);
    states = out.data();
    hidden = std::get<0>(last);
  }
  const at::Tensor sequences = at::tensor(order.sequences, at::kLong).to(x.device());
  return {states.index_select(0, back), at::zeros({items, one}, x.options()).index_copy(0, sequences, hidden[hidden.size(0) - (both ? 2 : 1)])};
}

}  // namespace fovea::text
