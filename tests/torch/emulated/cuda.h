// The device's own words on the host, for texts compiled by the host's compiler: the threads of a
// block are contexts that take turns, one after another, and wait for each other at barriers.
#pragma once

#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

namespace emulated {

constexpr unsigned kMostThreads = 256, kWarp = 32, kWarps = kMostThreads / kWarp;
constexpr size_t kStack = 256 << 10;

struct Index {
  unsigned x, y;
};

struct Block {
  Index block{}, grid{};
  unsigned threads = kMostThreads;
  unsigned current = 0, finished = 0;
  ucontext_t outside{};
  ucontext_t contexts[kMostThreads]{};
  bool done[kMostThreads]{};
  std::vector<char> stacks = std::vector<char>(kMostThreads * kStack);
  // Barriers: who came, and how often all did.
  unsigned arrived = 0, passed = 0;
  unsigned lanes_arrived[kMostThreads]{}, lanes_passed[kMostThreads]{};  // by a group's first lane
  int sum = 0, last_sum = 0;
  uint64_t slots[2][kMostThreads]{};
  const void* addresses[kMostThreads]{};
  unsigned words[kMostThreads][6]{};
  unsigned turn[kMostThreads]{};  // which of the two slots
  void (*body)(const void*) = nullptr;
  const void* arguments = nullptr;

  void next() {
    const unsigned from = current;
    do current = (current + 1) % threads;
    while (done[current]);
    if (current != from) swapcontext(&contexts[from], &contexts[current]);
  }
  template <class Counter>
  void wait(Counter& come, Counter& all, unsigned count) {
    const unsigned before = all;
    if (++come == count) {
      come = 0;
      ++all;
      return;
    }
    while (all == before) next();
  }
};
inline Block* now = nullptr;

inline void enter() {
  now->body(now->arguments);
  const unsigned me = now->current;
  now->done[me] = true;
  if (++now->finished == now->threads) setcontext(&now->outside);
  do now->current = (now->current + 1) % now->threads;
  while (now->done[now->current]);
  setcontext(&now->contexts[now->current]);
}

inline void run_block(Block& block) {
  now = &block;
  block.finished = block.current = 0;
  for (unsigned t = 0; t < block.threads; ++t) {
    block.done[t] = false;
    getcontext(&block.contexts[t]);
    block.contexts[t].uc_stack.ss_sp = block.stacks.data() + t * kStack;
    block.contexts[t].uc_stack.ss_size = kStack;
    block.contexts[t].uc_link = nullptr;
    makecontext(&block.contexts[t], enter, 0);
  }
  swapcontext(&block.outside, &block.contexts[0]);
}

inline Index thread() { return {now->current, 0}; }

// What another lane of the warp gave; `mask`: the lanes that take part.
template <class Number>
Number exchange(Number x, unsigned from_lane, unsigned mask = ~0u) {
  const unsigned me = now->current, warp = me / kWarp, turn = now->turn[me]++ % 2;
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  now->slots[turn][me] = bits;
  const unsigned first = warp * kWarp + static_cast<unsigned>(std::countr_zero(mask));
  now->wait(now->lanes_arrived[first], now->lanes_passed[first],
            static_cast<unsigned>(std::popcount(mask)));
  std::memcpy(&x, &now->slots[turn][warp * kWarp + from_lane % kWarp], sizeof x);
  return x;
}

inline void sync_warp() { exchange(0, 0); }

// ---- tensor cores (mma.h) ----

// Of lanes' registers: row or column `line` of A or B, element k of 16.
template <class Widen>
void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Widen widen) {
  const unsigned me = now->current, warp = me / kWarp * kWarp, lane = me % kWarp;
  std::memcpy(now->words[me], a, sizeof a);
  now->words[me][4] = b0;
  now->words[me][5] = b1;
  sync_warp();
  const auto number = [&](unsigned line, unsigned k, unsigned first) {
    const unsigned word = now->words[warp + line * 4 + k % 8 / 2][first];
    return widen(static_cast<unsigned short>(k % 2 ? word >> 16 : word));
  };
  for (unsigned n = 0; n < 4; ++n) {
    for (unsigned k = 0; k < 16; ++k)
      c[n] += number(lane / 4, k, n / 2 + (k < 8 ? 0 : 2)) *
              number(lane % 4 * 2 + n % 2, k, k < 8 ? 4 : 5);
  }
  sync_warp();
}

inline void load_matrices(unsigned (&x)[4], const void* row, bool transposed) {
  const unsigned me = now->current, warp = me / kWarp * kWarp, lane = me % kWarp;
  now->addresses[me] = row;
  sync_warp();
  for (unsigned n = 0; n < 4; ++n) {
    const auto number = [&](unsigned r, unsigned column) -> unsigned {
      return static_cast<const unsigned short*>(now->addresses[warp + n * 8 + r])[column];
    };
    const unsigned line = lane / 4, k = lane % 4 * 2;
    x[n] = transposed ? number(k, line) | number(k + 1, line) << 16
                      : number(line, k) | number(line, k + 1) << 16;
  }
  sync_warp();
}

inline void copy(void* to, const void* from, bool there, size_t bytes) {
  if (there)
    std::memcpy(to, from, bytes);
  else
    std::memset(to, 0, bytes);
}

}  // namespace emulated

#define threadIdx (emulated::thread())
#define blockIdx (emulated::now->block)
#define gridDim (emulated::now->grid)

inline void __syncthreads() {
  emulated::now->wait(emulated::now->arrived, emulated::now->passed, emulated::now->threads);
}
inline int __syncthreads_or(int x) {
  auto& block = *emulated::now;
  block.sum |= x != 0;
  __syncthreads();
  const int all = block.sum;
  __syncthreads();
  block.sum = 0;
  __syncthreads();
  return all;
}
inline void __syncwarp() { emulated::sync_warp(); }
template <class Number>
Number __shfl_xor_sync(unsigned mask, Number x, int distance) {
  return emulated::exchange(x, emulated::now->current % 32 ^ static_cast<unsigned>(distance), mask);
}
template <class Number>
Number __shfl_sync(unsigned, Number x, int lane) {
  return emulated::exchange(x, static_cast<unsigned>(lane));
}
template <class Number>
Number __shfl_up_sync(unsigned, Number x, int distance) {
  const unsigned lane = emulated::now->current % 32, by = static_cast<unsigned>(distance);
  return emulated::exchange(x, lane >= by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned, bool x) {
  const unsigned me = emulated::now->current, turn = emulated::now->turn[me];
  emulated::exchange<int>(x, 0);
  unsigned all = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    all |= static_cast<unsigned>(emulated::now->slots[turn % 2][me / 32 * 32 + lane] & 1) << lane;
  return all;
}
inline int __ffs(unsigned x) { return x ? std::countr_zero(x) + 1 : 0; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(unsigned x) { return std::countl_zero(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline void atomicAdd(unsigned long long* to, unsigned long long x) { *to += x; }
inline float half_to_float(unsigned short bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned short float_to_half(float x) {
  return std::bit_cast<unsigned short>(static_cast<_Float16>(x));
}
