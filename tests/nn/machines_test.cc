// The NTM's and the DNC's cell: ten steps against plain loops in double precision, gradients through
// ten steps against differences, and corners: one row, many steps, what a sequence finds.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fovea/error.h"
#include "fovea/nn/dnc.h"
#include "fovea/nn/ntm.h"
#include "tests/nn/differences.h"

namespace fovea::nn::machines_test {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr int64_t kSteps = 10;

NtmOptions small_ntm() {
  return {.input = 3,
          .output = 2,
          .rows = 5,
          .width = 4,
          .read_heads = 2,
          .write_heads = 2,
          .hidden = 6};
}
DncOptions small_dnc() {
  return {.input = 3, .output = 2, .rows = 5, .width = 4, .read_heads = 2, .hidden = 6};
}

// Threads that wait for each other cost more than such products, above all on a busy machine.
struct OneThread {
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before); }
  const int before = at::get_num_threads();
};

// Weights large enough that gates and modes differ from step to step.
template <class Cell, class Options>
Cell made(const Options& options) {
  torch::manual_seed(5);
  Cell cell(options);
  cell->to(torch::kFloat64);
  const at::NoGradGuard no_grad;
  for (at::Tensor& p : cell->parameters()) p.mul_(3);
  return cell;
}

at::Tensor inputs(int64_t steps, int64_t batch = 2) {
  torch::manual_seed(6);
  return torch::randn({steps, batch, 3}, torch::kFloat64);
}

template <class Cell>
at::Tensor outputs(Cell& cell, const at::Tensor& x) {
  auto state = cell->start(x.size(1));
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < x.size(0); ++t) {
    auto step = cell(x[t], state);
    out.push_back(step.output);
    state = step.state;
  }
  return torch::stack(out);
}

// ---- plain loops --------------------------------------------------------------------------------

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }
Row softmax(Row x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& e : x) sum += e = std::exp(e - most);
  for (double& e : x) e /= sum;
  return x;
}
Row content(const Row& key, double beta, const Rows& M) {
  const auto norm = [](const Row& x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 1e-6));
  };
  Row scores;
  for (const Row& row : M)
    scores.push_back(beta * std::inner_product(key.begin(), key.end(), row.begin(), 0.0) /
                     (norm(key) * norm(row)));
  return softmax(scores);
}
Row read(const Row& w, const Rows& M) {
  Row out(M[0].size());
  for (size_t i = 0; i < M.size(); ++i)
    for (size_t c = 0; c < out.size(); ++c) out[c] += w[i] * M[i][c];
  return out;
}
// The next numbers of a vector.
struct Taker {
  const double* at;
  Row take(size_t n) {
    const Row out(at, at + n);
    at += n;
    return out;
  }
  double take() { return *at++; }
  template <class Function>
  Row take(size_t n, Function&& function) {
    Row out = take(n);
    for (double& e : out) e = function(e);
    return out;
  }
};
Rows rows_of(const at::Tensor& x) {  // [n, m]
  Rows out;
  for (int64_t i = 0; i < x.size(0); ++i) {
    const at::Tensor row = x[i].contiguous();
    out.emplace_back(row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
  }
  return out;
}
void expect_near(const at::Tensor& got, const Rows& expected, const std::string& what) {
  const Rows rows = rows_of(got);
  ASSERT_EQ(rows.size(), expected.size()) << what;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < rows[i].size(); ++j)
      ASSERT_NEAR(rows[i][j], expected[i][j], 1e-9) << what << " " << i << " " << j;
}
at::Tensor vector_of(const std::function<at::Tensor(const at::Tensor&)>& linear,
                     const at::Tensor& h) {
  return linear(h).detach().contiguous();
}

TEST(NtmCell, TenStepsEqualAPlainLoop) {
  NtmCell cell = made<NtmCell>(small_ntm());
  const at::Tensor x = inputs(kSteps, 1);
  const size_t N = 5, W = 4, heads = 4;
  Rows M(N, Row(W, 1e-6)), w(heads, Row(N));
  for (Row& row : w) row[0] = 1;
  NtmState state = cell->start(1);
  for (int64_t t = 0; t < kSteps; ++t) {
    const NtmStep step = cell(x[t], state);
    state = step.state;
    const at::Tensor vector =
        vector_of([&](const at::Tensor& h) { return cell->heads(h); }, state.controller.hidden);
    Taker from{vector.data_ptr<double>()};
    Rows next;
    for (size_t h = 0; h < heads; ++h) {
      const Row key = from.take(W, [](double e) { return std::tanh(e); });
      const double beta = softplus(from.take()), g = sigmoid(from.take()),
                   gamma = 1 + softplus(from.take());
      const Row s = softmax(from.take(3)), c = content(key, beta, M);
      Row mixed(N), out(N);
      for (size_t i = 0; i < N; ++i) mixed[i] = g * c[i] + (1 - g) * w[h][i];
      double sum = 0;
      for (size_t i = 0; i < N; ++i) {
        double moved = 0;
        for (size_t j = 0; j < N; ++j)
          for (int by = -1; by <= 1; ++by)
            if ((j + N + static_cast<size_t>(by + 1) - 1) % N == i)
              moved += mixed[j] * s[static_cast<size_t>(by + 1)];
        sum += out[i] = std::pow(moved, gamma);
      }
      for (double& e : out) e /= sum;
      next.push_back(out);
    }
    w = next;
    expect_near(state.reads[0], {read(w[0], M), read(w[1], M)}, "reads");
    const Rows erase = {from.take(W, sigmoid), from.take(W, sigmoid)},
               add = {from.take(W), from.take(W)};
    for (size_t i = 0; i < N; ++i)
      for (size_t c = 0; c < W; ++c) {
        for (size_t h = 0; h < 2; ++h) M[i][c] *= 1 - w[2 + h][i] * erase[h][c];
        for (size_t h = 0; h < 2; ++h) M[i][c] += w[2 + h][i] * add[h][c];
      }
    expect_near(state.weights[0], w, "weights");
    expect_near(state.memory[0], M, "memory");
  }
}

TEST(DncCell, TenStepsEqualAPlainLoop) {
  DncCell cell = made<DncCell>(small_dnc());
  const at::Tensor x = inputs(kSteps, 1);
  const size_t N = 5, W = 4, R = 2;
  Rows M(N, Row(W)), L(N, Row(N)), reading(R, Row(N));
  Row u(N), p(N), writing(N);
  DncState state = cell->start(1);
  double forward_most = 0, backward_most = 0;
  for (int64_t t = 0; t < kSteps; ++t) {
    const DncStep step = cell(x[t], state);
    state = step.state;
    const at::Tensor vector =
        vector_of([&](const at::Tensor& h) { return cell->interface(h); }, state.controller.hidden);
    ASSERT_EQ(vector.numel(), static_cast<int64_t>(W * R + 3 * W + 5 * R + 3));
    Taker from{vector.data_ptr<double>()};
    const auto strength = [](double e) { return 1 + softplus(e); };
    const Rows read_keys = {from.take(W), from.take(W)};
    const Row write_key = from.take(W), erase = from.take(W, sigmoid), add = from.take(W),
              strengths = from.take(R + 1, strength), gates = from.take(R + 2, sigmoid);
    const Rows modes = {softmax(from.take(3)), softmax(from.take(3))};
    for (size_t i = 0; i < N; ++i) {
      u[i] = u[i] + writing[i] - u[i] * writing[i];
      for (size_t r = 0; r < R; ++r) u[i] *= 1 - gates[r] * reading[r][i];
    }
    std::vector<size_t> order(N);
    std::iota(order.begin(), order.end(), size_t{0});
    const auto offset = [&](size_t i) { return 1e-6 + (1 - 1e-6) * u[i]; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return u[a] < u[b]; });
    Row free(N);
    double product = 1;
    for (const size_t i : order) {
      free[i] = (1 - offset(i)) * product;
      product *= offset(i);
    }
    const Row c = content(write_key, strengths[R], M);
    double sum = 0;
    for (size_t i = 0; i < N; ++i)
      sum += writing[i] = gates[R + 1] * (gates[R] * free[i] + (1 - gates[R]) * c[i]);
    for (size_t i = 0; i < N; ++i)
      for (size_t k = 0; k < W; ++k)
        M[i][k] = M[i][k] * (1 - writing[i] * erase[k]) + writing[i] * add[k];
    for (size_t i = 0; i < N; ++i)
      for (size_t j = 0; j < N; ++j)
        L[i][j] = i == j ? 0 : (1 - writing[i] - writing[j]) * L[i][j] + writing[i] * p[j];
    for (size_t i = 0; i < N; ++i) p[i] = (1 - sum) * p[i] + writing[i];
    Rows next(R, Row(N));
    for (size_t r = 0; r < R; ++r) {
      const Row found = content(read_keys[r], strengths[r], M);
      for (size_t i = 0; i < N; ++i) {
        double forward = 0, backward = 0;
        for (size_t j = 0; j < N; ++j) {
          forward += L[i][j] * reading[r][j];
          backward += L[j][i] * reading[r][j];
        }
        next[r][i] = modes[r][0] * backward + modes[r][1] * found[i] + modes[r][2] * forward;
        forward_most = std::max(forward_most, forward);
        backward_most = std::max(backward_most, backward);
      }
    }
    reading = next;
    expect_near(state.usage, {u}, "usage");
    expect_near(state.write_weights, {writing}, "write weights");
    expect_near(state.memory[0], M, "memory");
    expect_near(state.links[0], L, "links");
    expect_near(state.precedence, {p}, "precedence");
    expect_near(step.modes[0], modes, "modes");
    expect_near(state.read_weights[0], reading, "read weights");
    expect_near(state.reads[0], {read(reading[0], M), read(reading[1], M)}, "reads");
  }
  // The links were used, not zero all along.
  EXPECT_GT(forward_most, 0.05);
  EXPECT_GT(backward_most, 0.05);
}

// ---- gradients ----------------------------------------------------------------------------------

// Every number of a machine as small as one can be that has all its parts.
template <class Cell>
void check_gradients(Cell cell) {
  const OneThread one_thread;
  const at::Tensor x = inputs(kSteps).narrow(2, 0, 2);
  test::expect_gradients_of_differences([&] { return outputs(cell, x).square().sum(); },
                                        cell->parameters());
}

TEST(NtmCell, GradientsThroughTenStepsEqualDifferences) {
  for (const ControllerKind kind : {ControllerKind::kLstm, ControllerKind::kFeedForward})
    check_gradients(made<NtmCell>(NtmOptions{
        .input = 2, .output = 1, .rows = 4, .width = 2, .hidden = 3, .controller = kind}));
}

TEST(DncCell, GradientsThroughTenStepsEqualDifferences) {
  check_gradients(made<DncCell>(DncOptions{.input = 2,
                                           .output = 1,
                                           .rows = 4,
                                           .width = 2,
                                           .read_heads = 1,
                                           .hidden = 3,
                                           .usage_gradient = UsageGradient::kWhole}));
}

TEST(DncCell, UsageStopsTheGradientOfWriteWeightsUnlessAskedNotTo) {
  for (const UsageGradient way : {UsageGradient::kStopped, UsageGradient::kWhole}) {
    DncOptions options = small_dnc();
    options.usage_gradient = way;
    DncCell cell = made<DncCell>(options);
    DncState state = cell->start(2);
    state.write_weights = torch::full({2, 5}, 0.15, torch::kFloat64).requires_grad_();
    const at::Tensor usage = cell(inputs(1)[0], state).state.usage;
    const auto gradient = torch::autograd::grad({usage.sum()}, {state.write_weights}, {}, {}, false,
                                                /*allow_unused=*/true)[0];
    EXPECT_EQ(gradient.defined(), way == UsageGradient::kWhole);
  }
}

TEST(DncCell, OfTheReadsAloneTheControllerAnswersThroughTheMemory) {
  DncOptions options = small_dnc();
  options.output_of = DncOutput::kReads;
  DncCell cell = made<DncCell>(options);
  EXPECT_EQ(cell->output->weight.sizes(), (std::vector<int64_t>{2, 2 * 4}));
  const DncStep step = cell(inputs(2)[0], cell->start(2));
  EXPECT_TRUE(torch::equal(step.output, cell->output(step.state.reads.flatten(1))));
}

// ---- corners ------------------------------------------------------------------------------------

TEST(Machines, AMemoryOfOneRowWorks) {
  NtmOptions ntm = small_ntm();
  DncOptions dnc = small_dnc();
  ntm.rows = dnc.rows = 1;
  NtmCell turing = made<NtmCell>(ntm);
  DncCell computer = made<DncCell>(dnc);
  const at::Tensor x = inputs(kSteps);
  NtmState state = turing->start(2);
  for (int64_t t = 0; t < kSteps; ++t) state = turing(x[t], state).state;
  EXPECT_TRUE(at::allclose(state.weights, torch::ones_like(state.weights)));
  DncState kept = computer->start(2);
  for (int64_t t = 0; t < kSteps; ++t) kept = computer(x[t], kept).state;
  EXPECT_EQ(kept.links.abs().max().item<double>(), 0);  // a row does not follow itself
  (outputs(turing, x).sum() + outputs(computer, x).sum()).backward();
  for (const auto& parameters : {turing->parameters(), computer->parameters()})
    for (const at::Tensor& p : parameters)
      EXPECT_TRUE(!p.grad().defined() || p.grad().isfinite().all().item<bool>());
}

TEST(Machines, OverManyStepsWeightsStayWeights) {
  NtmCell turing = made<NtmCell>(small_ntm());
  DncCell computer = made<DncCell>(small_dnc());
  const at::NoGradGuard no_grad;
  const OneThread one_thread;
  const at::Tensor x = inputs(300);
  NtmState state = turing->start(2);
  DncState kept = computer->start(2);
  for (int64_t t = 0; t < 300; ++t) {
    state = turing(x[t], state).state;
    kept = computer(x[t], kept).state;
    ASSERT_LT((state.weights.sum(2) - 1).abs().max().item<double>(), 1e-9);
    ASSERT_TRUE(state.memory.isfinite().all().item<bool>());
    for (const at::Tensor& share :
         {kept.usage, kept.write_weights.sum(1), kept.precedence.sum(1), kept.links.sum(1),
          kept.links.sum(2), kept.read_weights.sum(2)}) {
      ASSERT_GE(share.min().item<double>(), 0);
      ASSERT_LE(share.max().item<double>(), 1 + 1e-9);
    }
  }
}

TEST(Machines, SequencesOfABatchDoNotMeet) {
  NtmCell turing = made<NtmCell>(small_ntm());
  DncCell computer = made<DncCell>(small_dnc());
  const at::NoGradGuard no_grad;
  const at::Tensor x = inputs(kSteps, 3), second = x.narrow(1, 1, 1);
  EXPECT_TRUE(at::allclose(outputs(turing, x).narrow(1, 1, 1), outputs(turing, second)));
  EXPECT_TRUE(at::allclose(outputs(computer, x).narrow(1, 1, 1), outputs(computer, second)));
}

TEST(Machines, CloneHasItsOwnWeights) {
  DncCell computer = made<DncCell>(small_dnc());
  const at::Tensor x = inputs(3);
  auto copy = std::dynamic_pointer_cast<DncCellImpl>(computer->clone());
  DncCell other(copy);
  EXPECT_TRUE(torch::equal(outputs(other, x), outputs(computer, x)));
  const at::NoGradGuard no_grad;
  copy->interface->weight.zero_();
  EXPECT_FALSE(torch::equal(outputs(other, x), outputs(computer, x)));
}

TEST(Machines, RefuseWhatCannotBeNamingIt) {
  const auto message = [](const std::function<void()>& what) -> std::string {
    try {
      what();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  NtmOptions ntm = small_ntm();
  ntm.rows = 0;
  EXPECT_EQ(message([&] { NtmCell{ntm}; }), "rows: 0, expected at least 1");
  DncOptions dnc = small_dnc();
  dnc.read_heads = 0;
  EXPECT_EQ(message([&] { DncCell{dnc}; }), "read_heads: 0, expected at least 1");
  DncCell cell = made<DncCell>(small_dnc());
  EXPECT_EQ(message([&] {
              cell(torch::zeros({2, 7}, torch::kFloat64), cell->start(2));
            }),
            "x: 2 dimensions, width 7, expected [batch, 3]");
}

}  // namespace
}  // namespace fovea::nn::machines_test
