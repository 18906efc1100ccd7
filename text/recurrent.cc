#include "text/recurrent.h"

#include <ATen/ATen.h>
#include <torch/nn/utils/rnn.h>

#include <algorithm>
#include <numeric>

#include "fovea/error.h"

namespace fovea::text {
namespace {

namespace rnn = torch::nn::utils::rnn;

// The order in which libtorch's cells read packed sequences: step after step, the longest sequence
// first.
struct Order {
  std::vector<int64_t> sequences;    // that have items, longest first; equal ones as they came
  std::vector<int64_t> read;         // position in the packed input of each step's items
  std::vector<int64_t> back;         // where each input item stands in that reading
  std::vector<int64_t> batch_sizes;  // sequences that are still running, for each step
};

Order order_of(const at::Tensor& offsets) {
  const at::Tensor on_cpu = offsets.to(at::kCPU, at::kLong).contiguous();
  const int64_t* at = on_cpu.data_ptr<int64_t>();
  const int64_t items = on_cpu.size(0) - 1;
  const auto length = [&](int64_t i) { return at[i + 1] - at[i]; };
  Order out;
  for (int64_t i = 0; i < items; ++i)
    if (length(i) > 0) out.sequences.push_back(i);
  std::stable_sort(out.sequences.begin(), out.sequences.end(),
                   [&](int64_t a, int64_t b) { return length(a) > length(b); });
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

struct Weights {
  at::Tensor ih, hh, bias_ih, bias_hh;
};

Weights weights_of(torch::nn::Module& cell, const char* ending) {
  const auto all = cell.named_parameters();
  const auto of = [&](const char* name) { return all[std::string(name) + "_l0" + ending]; };
  return {of("weight_ih"), of("weight_hh"), of("bias_ih"), of("bias_hh")};
}

// h' = (1 - z) n + z h, with n = tanh(W x + r (U h + b)); gates_x is W x + b of r, z, n.
struct GruCell {
  at::Tensor step(const at::Tensor& gates_x, const at::Tensor& h, const Weights& w) const {
    const int64_t d = h.size(1);
    const auto x = gates_x.split_with_sizes({2 * d, d}, 1),
               g = at::linear(h, w.hh, w.bias_hh).split_with_sizes({2 * d, d}, 1);
    const auto rz = at::sigmoid(x[0] + g[0]).split_with_sizes({d, d}, 1);
    const at::Tensor n = at::tanh(at::addcmul(x[1], rz[0], g[1]));
    return at::lerp(n, h, rz[1]);
  }
  void grow(int64_t) {}
  void shrink(int64_t) {}
  void forget(const at::Tensor&) {}
};

// c' = f c + i g, h' = o tanh(c').
struct LstmCell {
  at::Tensor step(const at::Tensor& gates_x, const at::Tensor& h, const Weights& w) {
    const int64_t d = h.size(1);
    const auto all = (gates_x + at::linear(h, w.hh, w.bias_hh)).split_with_sizes({2 * d, d, d}, 1);
    const auto in_forget = at::sigmoid(all[0]).split_with_sizes({d, d}, 1);
    const at::Tensor kept = c.defined() ? in_forget[1] * c : at::zeros_like(h);
    c = at::addcmul(kept, in_forget[0], at::tanh(all[1]));
    return at::sigmoid(all[2]) * at::tanh(c);
  }
  void grow(int64_t rows) {
    if (c.defined()) c = at::constant_pad_nd(c, {0, 0, 0, rows - c.size(0)});
  }
  void shrink(int64_t rows) {
    if (c.defined()) c = c.narrow(0, 0, rows);
  }
  void forget(const at::Tensor& kept) {
    if (c.defined()) c = c * kept;
  }
  at::Tensor c;
};

// One direction over x in reading order. The input is divided once: libtorch's own walk takes a
// slice a step, and the gradient of each slice is as large as the whole input, which makes its
// backward quadratic in the number of steps.
template <class Cell>
at::Tensor direction(const at::Tensor& x, const std::vector<int64_t>& batch_sizes, const Weights& w,
                     int64_t width, bool backwards, double forgetting) {
  const auto pieces = at::linear(x, w.ih, w.bias_ih).split_with_sizes(batch_sizes, 0);
  std::vector<at::Tensor> states(batch_sizes.size());
  Cell cell;
  at::Tensor h =
      at::zeros({backwards ? batch_sizes.back() : batch_sizes.front(), width}, x.options());
  for (size_t i = 0; i < batch_sizes.size(); ++i) {
    const size_t t = backwards ? batch_sizes.size() - 1 - i : i;
    const int64_t running = batch_sizes[t];
    if (running > h.size(0)) {  // sequences that end here begin, walking backwards
      h = at::constant_pad_nd(h, {0, 0, 0, running - h.size(0)});
      cell.grow(running);
    } else if (running < h.size(0)) {
      h = h.narrow(0, 0, running);
      cell.shrink(running);
    }
    if (forgetting > 0 && i > 0) {
      const at::Tensor kept = remembered(running, forgetting, x);
      h = h * kept;
      cell.forget(kept);
    }
    states[t] = h = cell.step(pieces[t], h, w);
  }
  return at::cat(states);
}

}  // namespace

at::Tensor remembered(int64_t rows, double forgetting, const at::Tensor& like) {
  return at::empty({rows, 1}, like.options()).bernoulli_(1 - forgetting);
}

Walked walk(nn::Recurrent& encoder, const at::Tensor& x, const at::Tensor& offsets,
            double forgetting) {
  const int64_t items = offsets.size(0) - 1, width = encoder->state_width();
  const auto child = encoder->named_children()["rnn"];
  const auto gru = std::dynamic_pointer_cast<torch::nn::GRUImpl>(child);
  const auto lstm = std::dynamic_pointer_cast<torch::nn::LSTMImpl>(child);
  const bool both = gru ? gru->options.bidirectional() : lstm->options.bidirectional();
  const int64_t one = both ? width / 2 : width;
  if (x.size(0) == 0)
    return {at::zeros({0, width}, x.options()), at::zeros({items, one}, x.options())};

  const Order order = order_of(offsets);
  const at::Tensor read = at::tensor(order.read, at::kLong).to(x.device()),
                   back = at::tensor(order.back, at::kLong).to(x.device());
  const at::Tensor sorted = x.index_select(0, read);
  const int64_t layers = gru ? gru->options.num_layers() : lstm->options.num_layers();
  at::Tensor states;
  if (!encoder->is_training()) forgetting = 0;
  if (forgetting > 0 && layers > 1)
    throw Unsupported("forgetting: not with several recurrent layers");
  if (layers == 1 && (x.is_cpu() || forgetting > 0)) {
    const auto run = [&](const char* ending, bool backwards) {
      const Weights w = weights_of(*child, ending);
      return gru ? direction<GruCell>(sorted, order.batch_sizes, w, one, backwards, forgetting)
                 : direction<LstmCell>(sorted, order.batch_sizes, w, one, backwards, forgetting);
    };
    states = run("", false);
    if (both) states = at::cat({states, run("_reverse", true)}, 1);
  } else {
    const rnn::PackedSequence packed(sorted, at::tensor(order.batch_sizes, at::kLong));
    states = gru ? std::get<0>(gru->forward_with_packed_input(packed)).data()
                 : std::get<0>(lstm->forward_with_packed_input(packed)).data();
  }
  states = states.index_select(0, back);
  const at::Tensor sequences = at::tensor(order.sequences, at::kLong).to(x.device());
  const at::Tensor ends =
      offsets.to(at::kLong).slice(0, 1).index_select(0, sequences.to(offsets.device())) - 1;
  const at::Tensor at_end = states.index_select(0, ends.to(x.device())).slice(1, 0, one);
  return {states, at::zeros({items, one}, x.options()).index_copy(0, sequences, at_end)};
}

}  // namespace fovea::text
