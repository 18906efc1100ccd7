// Which pairs of a tile are there: rectangles of queries x keys, and what is looked at and read of
// their pairs.
#pragma once

namespace fovea::cuda {

// A rectangle of queries x keys of a sequence. Small, since registers are few.
struct Rectangle {
  int head;
  int row, rows;
  int key, keys;
  bool whole;
};
FOVEA_INLINE Cover cover_of(const Arguments& a, const Sequence& s, const Rectangle& at) {
  if (at.rows <= 0 || at.keys <= 0) return Cover::kNone;
  return Structure::cover(
      a.structure, {s.batch, at.head, at.row, at.rows, s.position + at.row, at.key, at.keys});
}
FOVEA_INLINE Rectangle clipped(const Sequence& s, int head, int row, int rows, int key, int keys) {
  return {head, row, least(rows, s.queries - row), key, least(keys, s.keys - key), false};
}

// Looks at rectangles one after another, a step of rows or keys apart. For a structure that reads memory,
// many of them are examined at once, one by each thread.
struct Covers {
  unsigned char* kept;  // shared, kThreads numbers
  int head = -1, first = 0;

  // Whether the rectangle has a pair. `row_step`, `key_step`: from one to the next.
  FOVEA_INLINE bool look(const Arguments& a, const Sequence& s, int of_head, int row, int rows,
                         int row_step, int key, int keys, int key_step, Rectangle& to) {
    to = clipped(s, of_head, row, rows, key, keys);
    Cover cover;
    if constexpr (Structure::kBand) {
      cover = cover_of(a, s, to);
    } else {
      const int at = row_step ? row / row_step : key / key_step;
      if (of_head != head || at < first || at >= first + kThreads) {
        head = of_head;
        first = at;
        const int n = static_cast<int>(threadIdx.x);
        __syncthreads();
        kept[n] = static_cast<unsigned char>(cover_of(
            a, s, clipped(s, of_head, row + n * row_step, rows, key + n * key_step, keys)));
        __syncthreads();
      }
      cover = static_cast<Cover>(kept[at - first]);
    }
    to.whole = cover == Cover::kAll && to.rows == rows && to.keys == keys;
    return cover != Cover::kNone;
  }
};

// A part of a rectangle, of `rows` x `keys`. Only bands are looked at again: others read memory.
inline bool part_of(const Arguments& a, const Sequence& s, const Rectangle& at, int row, int rows,
                    int key, int keys, Rectangle& to) {
  if constexpr (Structure::kBand) {
    to = clipped(s, at.head, at.row + row, rows, at.key + key, keys);
    const Cover cover = cover_of(a, s, to);
    to.whole = cover == Cover::kAll && to.rows == rows && to.keys == keys;
    return cover != Cover::kNone;
  }
  to = {at.head, at.row + row, least(rows, at.rows - row), at.key + key, least(keys, at.keys - key),
        at.whole};
  return to.rows > 0 && to.keys > 0;
}

// Which pairs of a rectangle are seen, of this thread: number c of block n of row block m.
template <bool kOwnerIsQuery>
struct Mask {
  const Arguments& a;
  const Sequence& s;
  const Rectangle& at;
  int own, other;        // of number 0 of the first blocks
  float apart;           // i - j of number 0
  unsigned start, size;  // of a band: i - j from its low end, and how many there are

  FOVEA_INLINE Mask(const Arguments& a, const Sequence& s, const Rectangle& at, int own)
      : a(a), s(s), at(at), own(own), other(lane() % 4 * 2) {
    constexpr int kFar = 0x7fffffff;
    int low = -kFar, high = kFar;
    if constexpr (Structure::kBand) Structure::narrow_band(a.structure, low, high);
    const int first = s.position + at.row - at.key + (kOwnerIsQuery ? own - other : other - own);
    apart = static_cast<float>(first);
    start = static_cast<unsigned>(first) - static_cast<unsigned>(low);
    size = low > high ? 0 : static_cast<unsigned>(high) - static_cast<unsigned>(low) + 1;
  }
  FOVEA_INLINE int row(int m, int n, int c) const {
    return kOwnerIsQuery ? own + m * 16 + c / 2 * 8 : other + n * 8 + c % 2;
  }
  FOVEA_INLINE int key(int m, int n, int c) const {
    return kOwnerIsQuery ? other + n * 8 + c % 2 : own + m * 16 + c / 2 * 8;
  }
  FOVEA_INLINE Place place(int m, int n, int c) const {
    Place place = place_of(at.row + row(m, n, c), at.key + key(m, n, c));
    const int more = m * 16 + c / 2 * 8 - n * 8 - c % 2;
    place.apart = apart + static_cast<float>(kOwnerIsQuery ? more : -more);
    return place;
  }
  // The same, or the nearest that is there.
  FOVEA_INLINE Place near(int m, int n, int c) const {
    return place_of(at.row + least(row(m, n, c), at.rows - 1),
                    at.key + least(key(m, n, c), at.keys - 1));
  }
  FOVEA_INLINE Place place_of(int r, int k) const {
    return {s.batch, at.head, r, s.position + r, k, k, row_index(a, s, at.head, r)};
  }
  // Rows that are not there weigh nothing.
  FOVEA_INLINE bool allows(int m, int n, int c) const {
    if constexpr (Structure::kBand && !Modifiers::kReads) {
      const int apart = m * 16 + c / 2 * 8 - n * 8 - c % 2;
      const unsigned from = start + static_cast<unsigned>(kOwnerIsQuery ? apart : -apart);
      return from < size && key(m, n, c) < at.keys;
    }
    // Nothing is read beyond the last row and key, and there is no branch.
    const bool there = (row(m, n, c) < at.rows) & (key(m, n, c) < at.keys);
    return there & Structure::allows(a.structure, near(m, n, c));
  }
};

// Which pairs of a rectangle are seen: of panels looked at while their products are made. A thread has
// two numbers of every eight of a row of the tile: bits of their order.
template <int kM, int kOther>
struct Seen {
  static constexpr bool kEarly = kPanels;  // else registers are short
  static_assert(!kEarly || kOther <= 128);
  Word bits[kM][2];

  // The first of them that lie before the one of this number.
  static FOVEA_INLINE Word before(int number) {
    const int from = least(most(number, 0), kOther) - lane() % 4 * 2;
    return static_cast<Word>((1ull << ((from >> 3) * 2 + least(from & 7, 2))) - 1);
  }
  template <bool kOwnerIsQuery>
  FOVEA_INLINE void look(const Arguments& a, const Mask<kOwnerIsQuery>& mask) {
    if constexpr (!kEarly) return;
    const Rectangle& at = mask.at;
    if (at.whole) return;
    const int i = mask.s.position + at.row;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int own = mask.own + m * 16 + half * 8, start = kOwnerIsQuery ? at.key : i;
        int first = start, end = start + (kOwnerIsQuery ? at.keys : at.rows);
        const Span span =
            kOwnerIsQuery ? Span{mask.s.batch, at.head, at.row + own, 1, i + own, at.key, at.keys}
                          : Span{mask.s.batch, at.head, at.row, at.rows, i, at.key + own, 1};
        if constexpr (kOwnerIsQuery)
          Structure::narrow_exact_keys(a.structure, span, first, end);
        else
          Structure::narrow_exact_positions(a.structure, span, first, end);
        if (own >= (kOwnerIsQuery ? at.rows : at.keys)) end = first;
        bits[m][half] = before(end - start) & ~before(first - start);
      }
      if constexpr (!Structure::kExact) {
        Word hidden[2] = {0, 0};
#pragma unroll(kOther > 64 ? 4 : 8)
        for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            hidden[c / 2] |= Structure::allows_beside(a.structure, mask.near(m, n, c))
                                 ? 0
                                 : 1u << (n * 2 + c % 2);
        }
        bits[m][0] &= ~hidden[0];
        bits[m][1] &= ~hidden[1];
      }
    }
  }
  template <bool kOwnerIsQuery>
  FOVEA_INLINE bool at(const Mask<kOwnerIsQuery>& mask, int m, int n, int c) const {
    if constexpr (kEarly) return bits[m][c / 2] >> (n * 2 + c % 2) & 1;
    return mask.allows(m, n, c);
  }
};

// What the first modifier reads of a rectangle's pairs, asked for before their products are there.
template <int kM, int kOther>
struct Given {
  static constexpr bool kEarly = kPanels && Modifiers::kReadsFirst;  // else registers are short
  static constexpr int kBlocks = kEarly ? kOther / 8 : 1;
  float numbers[kM][kBlocks][4];

  template <bool kOwnerIsQuery>
  FOVEA_INLINE void read(const Arguments& a, const Mask<kOwnerIsQuery>& mask) {
    if constexpr (!kEarly) return;
    const Rectangle& at = mask.at;
    const bool of_row =
        Modifiers::is_of_row(a.modifier, mask.s.position + at.row, at.rows, at.key, at.keys);
    const bool in_pairs = at.whole && Modifiers::reads_next(a.modifier, kOwnerIsQuery);
    if (of_row)
      each([&](int m, int n, int c) {
        const bool is_read = kOwnerIsQuery ? n == 0 && c % 2 == 0 : c < 2;
        numbers[m][n][c] = is_read         ? Modifiers::read(a.modifier, mask.near(m, n, c))
                           : kOwnerIsQuery ? numbers[m][0][c / 2 * 2]
                                           : numbers[m][n][c % 2];
      });
    else if (in_pairs)
      each([&](int m, int n, int c) {
        if (c % 2 == 0)
          Modifiers::read_two(a.modifier, mask.place(m, n, c), numbers[m][n][c],
                              numbers[m][n][c + 1]);
      });
    else
      each([&](int m, int n, int c) {
        numbers[m][n][c] = Modifiers::read(a.modifier, mask.near(m, n, c));
      });
  }
  template <class Body>
  FOVEA_INLINE static void each(Body body) {
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) body(m, n, c);
  }
  // The pair's score through the modifiers.
  template <bool kOwnerIsQuery>
  FOVEA_INLINE float value(const Arguments& a, const Mask<kOwnerIsQuery>& mask, int m, int n, int c,
                           float e, float* steps) const {
    if constexpr (kEarly)
      return Modifiers::value_with(a.modifier, mask.place(m, n, c), e, numbers[m][n][c], steps);
    return Modifiers::value(a.modifier, mask.place(m, n, c), e, steps);
  }
};

}  // namespace fovea::cuda
