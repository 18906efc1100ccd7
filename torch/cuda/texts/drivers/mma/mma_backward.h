// The query's gradient on tensor cores, and the two numbers of each row that the key's wants too.
#pragma once

namespace fovea::cuda {

// Queries own their sums; keys come kKeys at a time, and are computed kKeyStep at a time.
constexpr int kOwnQueries = kMmaWarps * 16 * kQueryM;

struct alignas(kAligned) MmaQueryShared {
  Stored queries[kOwnQueries * kPitch], outputs[kOwnQueries * kValuePitch];
  Stored keys[kPlaces][kKeys * kPitch], values[kPlaces][kKeys * kValuePitch];
  RowNumbers numbers[kOwnQueries];
  unsigned long long random[kDropout ? kOwnQueries : 1];
  int bad[kKeys];
  unsigned char covers[kThreads];
};
static_assert(sizeof(MmaQueryShared) <= kSharedBytes);

struct MmaQueryGradient {
  const Arguments& a;
  MmaQueryShared& shared;
  Sequence s;
  int head, row, key_head;
  float sums[kQueryM][kWidth / 8][4] = {};
  float slots[kQueryM][2][Modifiers::kCount + 1] = {}, ends[kQueryM][2][2] = {};
  RowNumbers numbers[kQueryM][2];
  Covers covers;

  // By distance (Relative): one within the clip is one pair's alone, the two ends are sums of the row.
  struct Sink {
    MmaQueryGradient& to;
    int m, half;
    FOVEA_INLINE void score(int, T) {}
    FOVEA_INLINE void slope(int n, T x) { to.slots[m][half][n] += x; }
    FOVEA_INLINE void distance(void* sums, const Change& change, const Place& p, T x) {
      if (x == 0 || !sums) return;  // a pair that is not there has 0
      const int clip = static_cast<int>(change.whole), apart = p.j - p.i;
      if (apart > -clip && apart < clip)
        static_cast<T*>(sums)[p.row_index * (2 * clip + 1) + apart + clip] = x;
      else if (apart > 0)
        to.ends[m][half][1] += x;
      else
        to.ends[m][half][0] += x;
    }
  };

  // Of pairs beyond the clip, whose gradients meet in one number of their row.
  struct QuietSink {
    FOVEA_INLINE void score(int, T) {}
    FOVEA_INLINE void slope(int, T) {}
    FOVEA_INLINE void distance(void*, const Change&, const Place&, T) {}
  };

  int own(int m, int half) const { return (warp() * kQueryM + m) * 16 + lane() / 4 + half * 8; }
  int next(int key, int end, Rectangle& at) {
    for (; key < end; key += kKeys)
      if (covers.look(a, s, head, row, kOwnQueries, 0, key, kKeys, kKeys, at)) return key;
    return end;
  }
  void copy(int key, int buffer) {
    copy_rows<kKeys, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                             s.keys - key);
    copy_rows<kKeys, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                  s.first_key + key, s.keys - key);
  }

  FOVEA_INLINE void add_step(const Rectangle& at, bool has_bad, int buffer, int first) {
    const int own_first = warp() * kQueryM * 16;
    float g[kQueryM][kKeyStep / 8][4], d[kQueryM][kKeyStep / 8][4];
    multiply_rows<kQueryM, kKeyStep, kWidth, kOwnQueries, kKeys>(shared.queries, own_first,
                                                                 shared.keys[buffer], first, g);
    multiply_rows<kQueryM, kKeyStep, kValueWidth, kOwnQueries, kKeys>(
        shared.outputs, own_first, shared.values[buffer], first, d);
    const Mask<true> mask(a, s, at, own(0, 0));
    Seen<kQueryM, kKeyStep> visible;
    visible.look(a, mask);
    Given<kQueryM, kKeyStep> given;
    given.read(a, mask);
    const auto number = [&](int m, int, int c) { return numbers[m][c / 2]; };
    if constexpr (kSplits) {
      wait_for<1>(g[0]);
      pair_weights(a, mask, visible, given, g, number);
      finish_first(g[0]);
      wait_for<0>(d[0]);
      add_gradients(mask, g, d, number);
    } else {
      const auto random = [&](int m, int, int c) { return shared.random[own(m, c / 2)]; };
      const auto sink = [&](int m, int c) { return Sink{*this, m, c / 2}; };
      wait_products(g, d);
      if (at.whole)
        pair_gradients<true, true, kQueryM, kKeyStep>(a, mask, visible, given, g, d, number, random,
                                                      sink);
      else
        pair_gradients<false, true, kQueryM, kKeyStep>(a, mask, visible, given, g, d, number,
                                                       random, sink);
    }
    const Whole first_key = s.first_key + at.key;
    if constexpr (kPanels) {  // the sums come while the next scores do
      Word gradients[kKeyStep / 16][4];
      pack_all<kKeyStep>(g[0], gradients);
      multiply_seen<kKeyStep, kWidth, kKeys>(has_bad, gradients, shared.keys[buffer], first, a.key,
                                             s.batch, key_head, first_key, shared.bad, sums[0]);
    } else {
      multiply_seen<kQueryM, kKeyStep, kWidth, kKeys>(has_bad, g, shared.keys[buffer], first, a.key,
                                                      s.batch, key_head, first_key, shared.bad,
                                                      sums);
    }
  }

  // g: weights, which become gradients; what modifiers' parameters want of them is kept.
  template <class Numbers>
  FOVEA_INLINE void add_gradients(const Mask<true>& mask, float (&g)[kQueryM][kKeyStep / 8][4],
                                  const float (&d)[kQueryM][kKeyStep / 8][4], Numbers number) {
    const Rectangle& at = mask.at;
    if (Modifiers::kAddsValues &&
        Modifiers::is_of_row(a.modifier, s.position + at.row, at.rows, at.key, at.keys)) {
      const auto quiet = [](int, int) { return QuietSink{}; };
      weight_gradients(a, mask, g, d, number, quiet);
      add_beyond(at, g[0]);
      return;
    }
    const auto sink = [&](int m, int c) { return Sink{*this, m, c / 2}; };
    weight_gradients(a, mask, g, d, number, sink);
  }
  FOVEA_INLINE void add_beyond(const Rectangle& at, const float (&g)[kKeyStep / 8][4]) {
    const bool after = at.key > s.position + at.row;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeyStep / 8; ++n) sum += g[n][2 * half] + g[n][2 * half + 1];
      ends[0][half][1] += after ? sum : 0;
      ends[0][half][0] += after ? 0 : sum;
    }
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    const bool has_bad =
        !at.whole && __syncthreads_or(finds_bad<kKeys, kWidth>(shared.keys[buffer]));
#pragma unroll 1
    for (int k = 0; k < kKeys; k += kKeyStep) {
      Rectangle part;
      if (part_of(a, s, at, 0, kOwnQueries, k, kKeyStep, part))
        add_step(part, has_bad, buffer, k);
      else
        wait_products(sums);  // as a step does, before its place comes again
    }
    if constexpr (kPlaces == 2) wait_products(sums);
  }

  // A row's numbers, kept for the kernel of the key's gradient. Eight lanes have a row.
  void keep_numbers(int count) {
    constexpr int kLanes = 8, kPieces = kValueWidth / 8;
    struct alignas(16) Piece {
      Stored x[8];
    };
    for (int first = 0; first < kOwnQueries; first += kThreads / kLanes) {
      const int r = first + threadIdx.x / kLanes;
      float delta = 0;
      if (Normaliser::kDelta == Delta::kFromOutput && r < count) {
        const Stored* d_output = row_of<Stored>(a.d_output, s.batch, head, s.first_query + row + r);
        const Stored* output = row_of<Stored>(a.output, s.batch, head, s.first_query + row + r);
        for (int c = threadIdx.x % kLanes; c < kPieces; c += kLanes) {
          const Piece x = reinterpret_cast<const Piece*>(d_output)[c],
                      y = reinterpret_cast<const Piece*>(output)[c];
#pragma unroll
          for (int n = 0; n < 8; ++n) delta += widen(x.x[n]) * widen(y.x[n]);
        }
      }
      delta = lanes_sum<kLanes>(delta);
      if (threadIdx.x % kLanes != 0 || r >= count) continue;
      const Whole index = row_index(a, s, head, row + r);
      RowData data = row_data(a, s, head, row + r);
      read_statistics(a, index, data);
      const RowNumbers of = numbers_of(data.row, delta, data.d_lse);
      shared.numbers[r] = static_cast<RowNumbers*>(a.delta)[index] = of;
      if constexpr (kDropout) shared.random[r] = data.random;
      if constexpr (Normaliser::kParameter) keep_parameter(index, data, delta);
    }
  }
  void keep_parameter(Whole index, const RowData& data, float delta) const {
    const float x = data.row.state == kSpoiled ? nan_of(T())
                    : data.row.state == kEmpty
                        ? T(0)
                        : Normaliser::parameter_gradient(a, head, data.row, delta, data.d_lse);
    static_cast<T*>(a.row_gradients)[kParameterSlot * a.rows + index] = x;
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    const int count = least(kOwnQueries, s.queries - row);
    copy_rows<kOwnQueries, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row,
                                   count);
    copy_rows<kOwnQueries, kValueWidth>(shared.outputs, a.d_output, s.batch, head,
                                        s.first_query + row, count);
    covers.kept = shared.covers;
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwnQueries, first, end);
    int key = next(first / kKeys * kKeys, end, at);
    if (key < end) copy(key, buffer);
    keep_numbers(count);
    __syncthreads();
#pragma unroll
    for (int m = 0; m < kQueryM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        numbers[m][half] =
            own(m, half) < count ? shared.numbers[own(m, half)] : RowNumbers{infinity_of(T()), 0};
    while (key < end) {
      const int following = next(key + kKeys, end, after);
      end_copies();
      __syncthreads();
      const int spare = next_place(buffer);
      if (following < end) copy(following, spare);
      add_tile(at, buffer);
      buffer = spare;
      key = following;
      at = after;
    }
    wait_copies();
    wait_products(sums);
    float factors[kQueryM][2];
    for (int m = 0; m < kQueryM; ++m) factors[m][0] = factors[m][1] = static_cast<float>(a.scale);
    write_rows<kQueryM, kWidth>(a.d_query, s.batch, head, s.first_query + row, count, sums,
                                factors);
    if constexpr (Modifiers::kSlopes) write_slots(count);
    if constexpr (Modifiers::kAddsValues) write_ends(count);
  }

  void write_ends(int count) {
    const Change& change = a.modifier[0];  // relative positions come first
    const Whole clip = change.whole;
#pragma unroll
    for (int m = 0; m < kQueryM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float low = lanes_sum<4>(ends[m][half][0]), high = lanes_sum<4>(ends[m][half][1]);
        if (!change.d_scores || lane() % 4 != 0 || own(m, half) >= count) continue;
        T* to = static_cast<T*>(change.d_scores) +
                row_index(a, s, head, row + own(m, half)) * (2 * clip + 1);
        to[0] = clip == 0 ? low + high : low;
        if (clip > 0) to[2 * clip] = high;
      }
  }

  void write_slots(int count) {
#pragma unroll
    for (int m = 0; m < kQueryM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int n = 0; n < Modifiers::kCount; ++n) {
          const float x = lanes_sum<4>(slots[m][half][n]);
          if (lane() % 4 != 0 || own(m, half) >= count) continue;
          static_cast<T*>(a.row_gradients)[(kFirstChange + n) * a.rows +
                                           row_index(a, s, head, row + own(m, half))] = x;
        }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kQueryResident)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaQueryShared*>(bytes);
  each_query_tile(a, kOwnQueries, [&](const Sequence& s, int head, int row) {
    MmaQueryGradient{a, shared, s, head, row, key_head_of(a, head)}.run();
  });
}
