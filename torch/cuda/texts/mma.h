// Products of 16-bit numbers on tensor cores, a warp at a time: mma.sync of 16 x 8 x 16 with sums in
// float32, and how its operands come from shared memory.
#pragma once

namespace fovea::cuda {

using Word = unsigned;

#ifdef __CUDACC_RTC__

inline void multiply(float (&c)[4], const Word (&a)[4], Word b0, Word b1, BFloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void multiply(float (&c)[4], const Word (&a)[4], Word b0, Word b1, Half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline Word pack(float low, float high, BFloat16) {
  Word word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
inline Word pack(float low, float high, Half) {
  Word word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
inline Word shared_address(const void* x) { return static_cast<Word>(__cvta_generic_to_shared(x)); }
// Four 8 x 8 matrices; lane n gives row n % 8 of matrix n / 8.
inline void load_matrices(Word (&x)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row)));
}
inline void load_transposed(Word (&x)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row)));
}
// 16 bytes to shared memory, zeros where they are not there; done after `wait_copies`.
inline void copy_16(void* to, const void* from, bool there) {
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
inline void copy_8(void* to, const void* from, bool there) {
  const int bytes = there ? 8 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
inline void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// sum + 0 x pair: 0 as long as all numbers are finite.
inline Word add_nothing(Word sum, Word pair, BFloat16) {
  asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(0));
  return sum;
}
inline Word add_nothing(Word sum, Word pair, Half) {
  asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(0));
  return sum;
}

#else

// The same words for the host (tests).
template <class Stored>
void multiply(float (&c)[4], const Word (&a)[4], Word b0, Word b1, Stored) {
  emulated::multiply(c, a, b0, b1, [](unsigned short bits) { return widen(Stored{bits}); });
}
template <class Stored>
Word pack(float low, float high, Stored) {
  Stored x, y;
  narrow(low, x);
  narrow(high, y);
  return x.bits | static_cast<Word>(y.bits) << 16;
}
inline void load_matrices(Word (&x)[4], const void* row) { emulated::load_matrices(x, row, false); }
inline void load_transposed(Word (&x)[4], const void* row) {
  emulated::load_matrices(x, row, true);
}
inline void copy_16(void* to, const void* from, bool there) { emulated::copy(to, from, there, 16); }
inline void copy_8(void* to, const void* from, bool there) { emulated::copy(to, from, there, 8); }
inline void wait_copies() {}
template <class Stored>
Word add_nothing(Word sum, Word pair, Stored) {
  const float low = widen(Stored{static_cast<unsigned short>(pair)}),
              high = widen(Stored{static_cast<unsigned short>(pair >> 16)});
  return sum | (low - low == 0 && high - high == 0 ? 0 : ~0u);
}

#endif

}  // namespace fovea::cuda
