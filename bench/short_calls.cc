// Calls of a few microseconds: the engine beside a plain loop and libtorch's attention, in turns.
//
//   short_calls [TABLE ...] [threads=N] [longest=N]
//
// Tables: causal, dense (forward, 1 to 64 positions), decode (one query, 64 to 4,096 keys), stored
// (decoding from bfloat16 and float16 beside float32), grain (all workers beside one, by the work
// there is: what kGrain in engine/runtime/parallel.h is taken from). All of them where none is named.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "bench/plain_loop.h"
#include "bench/timing.h"
#include "engine/dispatch.h"
#include "fovea/engine.h"
#include "torch/engine_call.h"

namespace fovea::bench {
namespace {

constexpr int64_t kHeads = 8, kWidth = 64;

struct Call {
  at::Tensor query, key, value, output, plain_output;
  bool causal;
  engine::Problem problem;
  engine::Result result;
  engine::Parallel parallel;

  Call(int64_t queries, int64_t keys, bool is_causal, at::ScalarType type, size_t workers)
      : query(at::randn({1, kHeads, queries, kWidth}).to(type)),
        key(at::randn({1, kHeads, keys, kWidth}).to(type)),
        value(at::randn({1, kHeads, keys, kWidth}).to(type)),
        output(at::zeros_like(query)),
        plain_output(at::zeros_like(query)),
        causal(is_causal),
        parallel(engine::default_parallel()) {
    problem.query = view_of(query);
    problem.key = view_of(key);
    problem.value = view_of(value);
    if (causal) problem.structure = engine::Causal{};
    result.output = view_of(output);
    if (workers) parallel.workers = workers;
  }

  void ours() const { engine::forward(problem, result, parallel); }
  at::Tensor sdpa() const {
    return at::scaled_dot_product_attention(query, key, value, std::nullopt, 0.0, causal);
  }
  void loop() const {
    plain_loop({.query = query.data_ptr<float>(),
                .key = key.data_ptr<float>(),
                .value = value.data_ptr<float>(),
                .output = plain_output.data_ptr<float>(),
                .heads = static_cast<size_t>(kHeads),
                .queries = static_cast<size_t>(query.size(2)),
                .keys = static_cast<size_t>(key.size(2)),
                .width = static_cast<size_t>(kWidth),
                .first_limit = static_cast<size_t>(causal ? 1 : key.size(2))});
  }
  void check() const {
    ours();
    const at::Tensor expected = sdpa().to(at::kFloat), got = output.to(at::kFloat);
    const double tolerance = query.scalar_type() == at::kFloat ? 1e-5 : 2e-2;
    if (!at::allclose(got, expected, tolerance, tolerance))
      throw std::runtime_error("ours differs from libtorch's attention");
    if (query.scalar_type() != at::kFloat) return;
    loop();
    if (!at::allclose(plain_output, expected, tolerance, tolerance))
      throw std::runtime_error("the plain loop differs from libtorch's attention");
  }
};

// Samples shorter than a time slice: beside other programs most of them are whole.
constexpr Protocol kProtocol{
    .minimum_rounds = 101, .maximum_rounds = 101, .seconds = 0, .shortest_sample = 1e-4};

// Worst ratios of a table.
struct Worst {
  double over_loop = 0, over_sdpa = 0;
};

// One line: microseconds of each, and how many times longer ours takes.
void print_line(int64_t length, const Call& call, Worst* worst) {
  call.check();
  const Timed timed =
      take_turns({[&] { call.ours(); }, [&] { call.loop(); }, [&] { call.sdpa(); }}, {}, kProtocol);
  const auto& [ours, loop, sdpa] = std::tie(timed.seconds[0], timed.seconds[1], timed.seconds[2]);
  const double over_loop = paired_ratio(ours, loop), over_sdpa = paired_ratio(ours, sdpa);
  worst->over_loop = std::max(worst->over_loop, over_loop);
  worst->over_sdpa = std::max(worst->over_sdpa, over_sdpa);
  std::printf("%8ld %10.2f %10.2f %10.2f %10.2f %10.2f\n", length, median(ours) * 1e6,
              median(loop) * 1e6, median(sdpa) * 1e6, over_loop, over_sdpa);
  std::fflush(stdout);
}

void print_head(const char* title, const char* length) {
  std::printf("%s\n%8s %10s %10s %10s %10s %10s\n", title, length, "ours us", "loop us", "sdpa us",
              "ours/loop", "ours/sdpa");
}
void print_end(const Worst& worst) {
  std::printf("largest ratio: %.2f of the loop, %.2f of sdpa\n\n", worst.over_loop,
              worst.over_sdpa);
}

void lengths(bool causal, int64_t longest, size_t workers) {
  print_head(causal ? "causal, forward, 8 heads of 64" : "dense, forward, 8 heads of 64", "length");
  Worst worst;
  for (int64_t n = 1; n <= longest; ++n)
    print_line(n, Call(n, n, causal, at::kFloat, workers), &worst);
  print_end(worst);
}

void decode(size_t workers) {
  print_head("one query, 8 heads of 64, as many key heads", "keys");
  Worst worst;
  for (int64_t keys = 64; keys <= 4096; keys *= 2)
    print_line(keys, Call(1, keys, false, at::kFloat, workers), &worst);
  print_end(worst);
}

void stored(size_t workers) {
  std::printf("one query, 8 heads of 64: time over that of float32\n%8s %10s %10s\n", "keys",
              "bfloat16", "float16");
  for (const int64_t keys : {64, 1024, 4096, 65536}) {
    const Call f32(1, keys, false, at::kFloat, workers),
        bf16(1, keys, false, at::kBFloat16, workers), f16(1, keys, false, at::kHalf, workers);
    for (const Call* call : {&f32, &bf16, &f16}) call->check();
    const Timed timed =
        take_turns({[&] { f32.ours(); }, [&] { bf16.ours(); }, [&] { f16.ours(); }}, {}, kProtocol);
    std::printf("%8ld %10.2f %10.2f\n", keys, paired_ratio(timed.seconds[1], timed.seconds[0]),
                paired_ratio(timed.seconds[2], timed.seconds[0]));
    std::fflush(stdout);
  }
}

// By tiles, past the limit on workers that attend has: the lowest times, since a neighbour on the
// other core makes two workers one.
void grain() {
  std::printf("dense, forward, 8 heads of 64: all workers over one, lowest of many\n%8s %14s %8s\n",
              "length", "multiply-adds", "ratio");
  for (const int64_t n : {8, 16, 24, 32, 48, 64, 96, 128}) {
    const Call call(n, n, false, at::kFloat, 0);
    const engine::Geometry geometry = engine::resolve(call.problem);
    const auto with = [&](const engine::Parallel& parallel) {
      engine::kTilesPath.f32.forward(call.problem, geometry, call.result, parallel);
    };
    const engine::Parallel one;
    Protocol many = kProtocol;
    many.minimum_rounds = many.maximum_rounds = 1001;
    Timed timed = take_turns({[&] { with(one); }, [&] { with(call.parallel); }}, {}, many);
    for (auto& seconds : timed.seconds) std::sort(seconds.begin(), seconds.end());
    std::printf("%8ld %14ld %8.2f\n", n, kHeads * n * n * 2 * kWidth,
                timed.seconds[1][5] / timed.seconds[0][5]);
    std::fflush(stdout);
  }
}

size_t number_of(std::string_view text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(std::string(text) + ": expected a number");
  return number;
}

int run(int count, char** words) {
  const c10::InferenceMode inference;
  std::vector<std::string_view> tables;
  size_t workers = 0;
  int64_t longest = 64;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("threads="))
      workers = number_of(word.substr(8));
    else if (word.starts_with("longest="))
      longest = static_cast<int64_t>(number_of(word.substr(8)));
    else
      tables.push_back(word);
  }
  if (tables.empty()) tables = {"causal", "dense", "decode", "stored", "grain"};
  if (workers) at::set_num_threads(static_cast<int>(workers));
  for (const std::string_view table : tables) {
    if (table == "causal" || table == "dense")
      lengths(table == "causal", longest, workers);
    else if (table == "decode")
      decode(workers);
    else if (table == "stored")
      stored(workers);
    else if (table == "grain")
      grain();
    else
      throw std::invalid_argument(std::string(table) +
                                  ": expected causal, dense, decode, stored or grain");
  }
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int count, char** words) {
  try {
    return fovea::bench::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "short_calls: %s\n", error.what());
    return 2;
  }
}
