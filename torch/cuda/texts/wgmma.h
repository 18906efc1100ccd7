// Products of 16-bit numbers on Hopper's tensor cores, four warps at a time (wgmma): 64 rows, sums in
// float32 in registers as mma.sync has them, 16 rows a warp.
//
// Rows lie in shared memory in panels of 64 columns, 128 bytes per row; the eight pieces of 16 bytes of
// row r are exchanged by r % 8, so that neither rows nor columns of pieces meet in a bank.
#pragma once

namespace fovea::cuda {

// What the instruction is told of a tile: where it starts and how far its parts lie apart, in units of
// 16 bytes, and the exchange of pieces (the top bits).
using Tile = unsigned long long;
constexpr Tile kExchanged = Tile(1) << 62, kEightRows = Tile(1024 / 16) << 32;

// Whether the device has it and the tiles lie so (sm_90a; elsewhere mma.sync reads the same tiles).
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kGroups = kPanels;
#else
constexpr bool kGroups = false;
#endif

#ifdef __CUDACC_RTC__
// The same for all threads of a warp, which a lane tells the compiler.
inline Tile tile_at(const void* x, int panel_bytes) {
  const Word place = __shfl_sync(~0u, (shared_address(x) & 0x3ffff) >> 4, 0);
  return kExchanged | kEightRows | static_cast<Tile>(panel_bytes / 16) << 16 | place;
}
inline void begin_group() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline void end_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
void wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// Nothing that reads these numbers comes before.
inline void keep_after(float (&c)[4]) {
  asm volatile("" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])::"memory");
}
// What threads wrote to shared memory is there for the products after the next barrier.
inline void publish_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Nothing that makes `x` comes later. It is false.
inline void stop_if_any(bool x) {
  if (__any_sync(~0u, x)) __trap();
}

#define FOVEA_FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
inline void multiply_group(float (&c)[4][4], Tile a, Tile b, bool adds, BFloat16) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %18, 0; "
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0,"
      " 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[4][4], Tile a, Tile b, bool adds, Half) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %18, 0; "
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0,"
      " 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[8][4], Tile a, Tile b, bool adds, BFloat16) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0; "
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[8][4], Tile a, Tile b, bool adds, Half) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0; "
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[16][4], Tile a, Tile b, bool adds, BFloat16) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,"
      "%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63}, %64, %65, p, 1, 1, 0, 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7), FOVEA_FOUR(8), FOVEA_FOUR(9), FOVEA_FOUR(10), FOVEA_FOUR(11),
        FOVEA_FOUR(12), FOVEA_FOUR(13), FOVEA_FOUR(14), FOVEA_FOUR(15)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[16][4], Tile a, Tile b, bool adds, Half) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,"
      "%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63}, %64, %65, p, 1, 1, 0, 0;"
      "}"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7), FOVEA_FOUR(8), FOVEA_FOUR(9), FOVEA_FOUR(10), FOVEA_FOUR(11),
        FOVEA_FOUR(12), FOVEA_FOUR(13), FOVEA_FOUR(14), FOVEA_FOUR(15)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
inline void multiply_group(float (&c)[4][4], const Word (&a)[4], Tile b, BFloat16) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20,"
      " 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
inline void multiply_group(float (&c)[4][4], const Word (&a)[4], Tile b, Half) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20,"
      " 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
inline void multiply_group(float (&c)[8][4], const Word (&a)[4], Tile b, BFloat16) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
inline void multiply_group(float (&c)[8][4], const Word (&a)[4], Tile b, Half) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
inline void multiply_group(float (&c)[16][4], const Word (&a)[4], Tile b, BFloat16) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,"
      "%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7), FOVEA_FOUR(8), FOVEA_FOUR(9), FOVEA_FOUR(10), FOVEA_FOUR(11),
        FOVEA_FOUR(12), FOVEA_FOUR(13), FOVEA_FOUR(14), FOVEA_FOUR(15)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
inline void multiply_group(float (&c)[16][4], const Word (&a)[4], Tile b, Half) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"
      "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,"
      "%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
      : FOVEA_FOUR(0), FOVEA_FOUR(1), FOVEA_FOUR(2), FOVEA_FOUR(3), FOVEA_FOUR(4), FOVEA_FOUR(5),
        FOVEA_FOUR(6), FOVEA_FOUR(7), FOVEA_FOUR(8), FOVEA_FOUR(9), FOVEA_FOUR(10), FOVEA_FOUR(11),
        FOVEA_FOUR(12), FOVEA_FOUR(13), FOVEA_FOUR(14), FOVEA_FOUR(15)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
#undef FOVEA_FOUR
#else
// The host has mma.h's words alone.
inline Tile tile_at(const void*, int) { return 0; }
inline void begin_group() {}
inline void end_group() {}
template <int kLeft>
void wait_group() {}
inline void keep_after(float (&)[4]) {}
inline void publish_copies() {}
inline void stop_if_any(bool) {}
#endif

}  // namespace fovea::cuda
