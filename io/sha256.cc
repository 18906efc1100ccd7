#include "io/sha256.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace fovea::io {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
}

using State = std::array<uint32_t, 8>;

// Section 6.2.2: the message schedule, then 64 rounds.
void plain_block(State& state, const uint8_t* bytes) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian(bytes + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t early = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t late = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + early + w[t - 7] + late;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t choose = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choose + kRound[t] + w[t];
    const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const State change = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += change[i];
}

#ifdef __x86_64__

// The same with SHA instructions, which keep half of the state in each register: a, b, e, f and c,
// d, g, h. Gigabytes of weights are hashed whenever a run is opened.
__attribute__((target("sha,sse4.1"))) void x86_block(State& state, const uint8_t* bytes) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto words = [&](size_t from) __attribute__((target("sha,sse4.1"))) {
    return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + from)), swap);
  };
  auto [a, b, c, d, e, f, g, h] = state;
  const auto set = [](uint32_t w3, uint32_t w2, uint32_t w1, uint32_t w0) {
    return _mm_set_epi32(static_cast<int>(w3), static_cast<int>(w2), static_cast<int>(w1),
                         static_cast<int>(w0));
  };
  __m128i abef = set(a, b, e, f), cdgh = set(c, d, g, h);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  __m128i w[4] = {words(0), words(16), words(32), words(48)};
  for (size_t four = 0; four < 16; ++four) {
    __m128i& now = w[four % 4];  // it held what came sixteen words before
    if (four >= 4) {
      const __m128i last = w[(four + 3) % 4], one_before = w[(four + 2) % 4];
      now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(four + 1) % 4]),
                                               _mm_alignr_epi8(last, one_before, 4)),
                                 last);
    }
    const __m128i with_constants =
        _mm_add_epi32(now, _mm_loadu_si128(reinterpret_cast<const __m128i*>(&kRound[4 * four])));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, with_constants);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(with_constants, 0x0e));
  }
  alignas(16) std::array<uint32_t, 8> out;
  _mm_store_si128(reinterpret_cast<__m128i*>(out.data()), _mm_add_epi32(abef, abef_before));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.data() + 4), _mm_add_epi32(cdgh, cdgh_before));
  state = {out[3], out[2], out[7], out[6], out[1], out[0], out[5], out[4]};
}

// CPUID leaf 7, EBX bit 29; every processor that has them has SSE4.1.
bool has_x86_instructions() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx >> 29 & 1) != 0;
}

#endif

auto best_block() {
#ifdef __x86_64__
  static const bool fast = has_x86_instructions();
  if (fast) return x86_block;
#endif
  return plain_block;
}

}  // namespace

Sha256::Sha256(Code code) : block_(code == Code::kPlain ? plain_block : best_block()) {}

void Sha256::add(std::string_view bytes) {
  const auto* next = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  total_ += left;
  if (held_ > 0) {
    const size_t taken = std::min(left, rest_.size() - held_);
    std::memcpy(rest_.data() + held_, next, taken);
    held_ += taken, next += taken, left -= taken;
    if (held_ < rest_.size()) return;
    block_(state_, rest_.data());
    held_ = 0;
  }
  for (; left >= rest_.size(); next += rest_.size(), left -= rest_.size()) block_(state_, next);
  if (left > 0) std::memcpy(rest_.data(), next, left);
  held_ = left;
}

// Section 5.1.1: a one, zeros, and the length in bits as 64 of them.
std::string Sha256::hex() {
  const uint64_t bits = 8 * total_;
  add(std::string_view("\x80", 1));
  while (held_ != 56) add(std::string_view("\0", 1));
  std::array<char, 8> length;
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  add({length.data(), length.size()});
  std::string out;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

}  // namespace fovea::io
