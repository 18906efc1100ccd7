#include <fovea/engine.h>

int main() { return fovea::engine::simd_target() == nullptr; }
