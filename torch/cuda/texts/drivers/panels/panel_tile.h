// Dot products of rows of float32 or float64 on panels: a block holds kOwn rows of the side that owns
// what is computed, and meets the other side kOther rows at a time. Panels lie in shared memory row by
// row. The owner's rows lie on groups of kMembers threads of one warp, the other's on the threads of a
// group, so that what a group computes of its pairs only it reads again, and sums are in a fixed order.
#pragma once

namespace fovea::cuda {

constexpr int kGroups = kThreads / kMembers;
constexpr int kPerOwn = kOwn / kGroups, kPerOther = kOther / kMembers;
constexpr int kPack = 16 / sizeof(T);  // numbers that are read at a time
constexpr int kSpan = kPack * kMembers;
constexpr int larger_of(int x, int y) { return x > y ? x : y; }
constexpr int rounded_up(int n, int to) { return (n + to - 1) / to * to; }
constexpr int kDepth = rounded_up(larger_of(kWidth, kValueWidth), kSpan);
constexpr int kPitch = kDepth + kPack, kProductPitch = kOther + 2 * kPack;
constexpr int kColumns = kDepth / kMembers;  // of a thread

// The members of a group are lanes kLaneStep apart, so that neighbours read the same of one side: then
// a load of 16 bytes takes two turns and not four.
constexpr int kLaneStep = 2, kLanesOfGroup = kLaneStep * kMembers;
inline int member() { return threadIdx.x % kLanesOfGroup / kLaneStep; }
inline int group() { return threadIdx.x / kLanesOfGroup * kLaneStep + threadIdx.x % kLaneStep; }
inline int lane_of(int member) {
  return threadIdx.x % kWarp / kLanesOfGroup * kLanesOfGroup + threadIdx.x % kLaneStep +
         member * kLaneStep;
}
template <class Number>
Number members_sum(Number x) {
  for (int distance = kMembers / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(~0u, x, distance * kLaneStep);
  return x;
}
inline T members_max(T x) {
  for (int distance = kMembers / 2; distance > 0; distance /= 2)
    x = larger(x, __shfl_xor_sync(~0u, x, distance * kLaneStep));
  return x;
}
// Which members of the group say yes, a bit each, of the warp's ballot.
inline unsigned members_of(unsigned ballot) {
  unsigned x = ballot >> lane_of(0);
  x &= 0x55555555u;  // every second bit
  x = (x | x >> 1) & 0x33333333u;
  x = (x | x >> 2) & 0x0f0f0f0fu;
  x = (x | x >> 4) & 0x00ff00ffu;
  x = x | x >> 8;
  return x & ((1u << kMembers) - 1);
}
inline int own_row(int r) { return group() + r * kGroups; }
inline int other_row(int n) { return member() + n * kMembers; }
inline int column_of(int c) { return c / kPack * kSpan + member() * kPack + c % kPack; }

struct alignas(16) Pack {
  T x[kPack];
};
inline Pack pack_at(const T* x) { return *reinterpret_cast<const Pack*>(x); }

template <int kOwners>
struct alignas(16) Panels {
  T own[kOwners][kOwn * kPitch];
  T other[2][kOther * kPitch];
  T products[kOwn * kProductPitch];       // weights, or gradients, of the pairs
  RowData rows[larger_of(kOwn, kOther)];  // of the queries
  int counts[kOwn];
};

#ifdef __CUDACC_RTC__
inline void copy_number(void* to, const void* from, bool there) {
  const int bytes = there ? sizeof(T) : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from),
               "n"(sizeof(T)), "r"(bytes)
               : "memory");
}
inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until no more than the last kLeft groups of copies are under way.
template <int kLeft>
void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
#else
inline void copy_number(void* to, const void* from, bool there) {
  emulated::copy(to, from, there, sizeof(T));
}
inline void end_copies() {}
template <int kLeft>
void wait_for_copies() {}
#endif

// Rows of an operand.
struct Side {
  const T* data;  // the first row
  Whole row;
  int count;  // of rows that are there
};
inline Side side_of(const Rows& rows, int batch, int head, Whole first, int count) {
  return {row_of<T>(rows, batch, head, first), rows.row, count};
}

// Starts to copy a side's rows of kCount numbers, with zeros around them.
template <int kRows, int kCount>
void stage(const Side& side, T* to) {
  constexpr int kPieces = kDepth / kPack;
  const bool whole = kCount % kPack == 0 && side.row % kPack == 0 &&
                     reinterpret_cast<unsigned long long>(side.data) % 16 == 0;
#pragma unroll
  for (int m = 0; m < kRows * kPieces / kThreads; ++m) {
    const int n = m * kThreads + threadIdx.x, c = n % kPieces * kPack, r = n / kPieces;
    T* const at = to + r * kPitch + c;
    const T* const from = side.data + r * side.row + c;
    if (whole) {
      const bool there = r < side.count && c < kCount;
      copy_16(at, there ? from : side.data, there);
    } else {
      for (int k = 0; k < kPack; ++k) {
        const bool there = r < side.count && c + k < kCount;
        copy_number(at + k, there ? from + k : side.data, there);
      }
    }
  }
  end_copies();
}

// Whether all numbers are finite that this thread has copied to a panel.
template <int kRows>
bool is_finite_part(const T* panel) {
  constexpr int kPieces = kDepth / kPack;
  T none = 0;
#pragma unroll
  for (int m = 0; m < kRows * kPieces / kThreads; ++m) {
    const int n = m * kThreads + threadIdx.x;
    const Pack x = pack_at(panel + n / kPieces * kPitch + n % kPieces * kPack);
#pragma unroll
    for (int k = 0; k < kPack; ++k) none += x.x[k] * 0;
  }
  return none == 0;
}

// sums[r][n] = own's row r . other's row n
template <int kCount>
FOVEA_INLINE void multiply_rows(const T* own, const T* other, T (&sums)[kPerOwn][kPerOther]) {
#pragma unroll
  for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
    for (int n = 0; n < kPerOther; ++n) sums[r][n] = 0;
  }
  own += group() * kPitch;
  other += member() * kPitch;
#pragma unroll kUnrolled
  for (int f = 0; f < rounded_up(kCount, kPack); f += kPack) {
    Pack x[kPerOwn];
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) x[r] = pack_at(own + r * kGroups * kPitch + f);
#pragma unroll
    for (int n = 0; n < kPerOther; ++n) {
      const Pack y = pack_at(other + n * kMembers * kPitch + f);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
#pragma unroll
        for (int r = 0; r < kPerOwn; ++r) sums[r][n] += x[r].x[k] * y.x[k];
      }
    }
  }
}

// Numbers of the pairs, for `add_rows` by the same group.
FOVEA_INLINE void keep_products(T* products, const T (&x)[kPerOwn][kPerOther]) {
  __syncwarp();
#pragma unroll
  for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
    for (int n = 0; n < kPerOther; ++n)
      products[own_row(r) * kProductPitch + other_row(n)] = x[r][n];
  }
  __syncwarp();
}

// sums[r][c] += sum over the other's rows o of products[r][o] other[o][c]
FOVEA_INLINE void add_finite_rows(const T* products, const T* other, T (&sums)[kPerOwn][kColumns]) {
  products += group() * kProductPitch;
  other += member() * kPack;
#pragma unroll kUnrolled
  for (int o = 0; o < kOther; o += kPack) {
    Pack p[kPerOwn];
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) p[r] = pack_at(products + r * kGroups * kProductPitch + o);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
#pragma unroll
      for (int part = 0; part < kColumns / kPack; ++part) {
        const Pack x = pack_at(other + (o + k) * kPitch + part * kSpan);
#pragma unroll
        for (int q = 0; q < kPack; ++q) {
#pragma unroll
          for (int r = 0; r < kPerOwn; ++r) sums[r][part * kPack + q] += p[r].x[k] * x.x[q];
        }
      }
    }
  }
}

// The same where a number is not finite: a product of 0 takes nothing from it, the pair is not there.
inline void add_there(const T* products, const T* other, T (&sums)[kPerOwn][kColumns]) {
#pragma unroll 1
  for (int o = 0; o < kOther; ++o) {
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const T p = products[own_row(r) * kProductPitch + o];
      if (p == 0) continue;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[r][c] += p * other[o * kPitch + column_of(c)];
    }
  }
}
FOVEA_INLINE void add_rows(const T* products, const T* other, bool finite,
                           T (&sums)[kPerOwn][kColumns]) {
  if (finite)
    add_finite_rows(products, other, sums);
  else
    add_there(products, other, sums);
}

// A query tile against a key tile: which pairs are seen.
struct Rectangle {
  Sequence s;
  int head, key_head;
  int row, rows;  // of the queries
  int key, keys;
  bool whole;  // every pair is allowed
};

// False where no pair is allowed.
inline bool rectangle_of(const Arguments& a, const Sequence& s, int head, int row, int rows,
                         int key, int keys, Rectangle& to) {
  to = {s,
        head,
        head / (a.heads / a.key_heads),
        row,
        least(rows, s.queries - row),
        key,
        least(keys, s.keys - key),
        false};
  if (to.rows <= 0 || to.keys <= 0) return false;
  const Cover cover =
      Structure::cover(a.structure, {s.batch, head, row, to.rows, s.position + row, key, to.keys});
  to.whole = cover == Cover::kAll && to.rows == rows && to.keys == keys;
  return cover != Cover::kNone;
}

// Pairs of a thread.
using Bits = unsigned long long;
constexpr Bits bit_of(int r, int n) { return Bits(1) << (r * kPerOther + n); }

template <bool kOwnerIsQuery>
struct Pairs {
  static constexpr int kRows = kOwnerIsQuery ? kOwn : kOther, kKeys = kOwnerIsQuery ? kOther : kOwn;
  static int row(int r, int n) { return kOwnerIsQuery ? own_row(r) : other_row(n); }
  static int key(int r, int n) { return kOwnerIsQuery ? other_row(n) : own_row(r); }
  static Place place(const Arguments& a, const Rectangle& at, int r, int n) {
    const int row = at.row + Pairs::row(r, n), key = at.key + Pairs::key(r, n);
    return {
        at.s.batch, at.head, row, at.s.position + row, key, key, row_index(a, at.s, at.head, row)};
  }
  template <bool kWhole, class Visit>
  FOVEA_INLINE static void visit_pair(const Arguments& a, const RowData* rows, const Rectangle& at,
                                      int r, int n, T sum, Visit& visit) {
    if (!kWhole && (row(r, n) >= at.rows || key(r, n) >= at.keys)) return;
    const Place p = place(a, at, r, n);
    if (!kWhole && !Structure::allows(a.structure, p)) return;
    const RowData& data = rows[row(r, n)];
    const Scored scored = score_of(a, p, sum, data.inverse);
    if (scored.seen) visit(r, n, p, scored, data);
  }
  // visit(r, n, place, scored, data of the row) for the pairs of `bits` that are seen, those of a query
  // together.
  template <bool kWhole, class Visit>
  FOVEA_INLINE static void visit_pairs(const Arguments& a, const RowData* rows, const Rectangle& at,
                                       const T (&sums)[kPerOwn][kPerOther], Bits bits,
                                       Visit& visit) {
    constexpr int kFirst = kOwnerIsQuery ? kPerOwn : kPerOther,
                  kSecond = kOwnerIsQuery ? kPerOther : kPerOwn;
#pragma unroll
    for (int x = 0; x < kFirst; ++x) {
#pragma unroll
      for (int y = 0; y < kSecond; ++y) {
        const int r = kOwnerIsQuery ? x : y, n = kOwnerIsQuery ? y : x;
        if (bits & bit_of(r, n)) visit_pair<kWhole>(a, rows, at, r, n, sums[r][n], visit);
      }
    }
  }
  template <class Visit>
  FOVEA_INLINE static void each_seen(const Arguments& a, const RowData* rows, const Rectangle& at,
                                     const T (&sums)[kPerOwn][kPerOther], Visit visit) {
    if (at.whole)
      visit_pairs<true>(a, rows, at, sums, ~Bits(0), visit);
    else
      visit_pairs<false>(a, rows, at, sums, ~Bits(0), visit);
  }
};

// The other side's rows that a row of the group's has pairs with, a bit each.
struct Masks {
  Bits x[kPerOwn];
};
FOVEA_INLINE Masks masks_of(Bits bits) {
  Masks masks{};
#pragma unroll
  for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
    for (int n = 0; n < kPerOther; ++n) {
      const unsigned all = __ballot_sync(~0u, (bits & bit_of(r, n)) != 0);
      masks.x[r] |= Bits(members_of(all)) << (n * kMembers);
    }
  }
  return masks;
}

// body(the other side's rows, which of them there are) for one pair of each row of the group at a time.
template <class Body>
FOVEA_INLINE void each_pair(Masks masks, Body body) {
  for (;;) {
    int other[kPerOwn];
    bool there[kPerOwn], any = false;
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      there[r] = masks.x[r] != 0;
      other[r] = there[r] ? __ffsll(masks.x[r]) - 1 : 0;
      masks.x[r] &= masks.x[r] - 1;
      any |= there[r];
    }
    if (__ballot_sync(~0u, any) == 0) break;
    body(other, there);
  }
}

}  // namespace fovea::cuda
