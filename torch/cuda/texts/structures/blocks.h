// Whole size x size blocks. number: size; array: bool, broadcasts to blocks of [B, H, L, S].
#pragma once

namespace fovea::cuda {

struct Blocks : Unbounded {
  static bool at(const Part& part, int batch, int head, Whole row, Whole key) {
    return element<bool>(part.array[0], batch, head, row, key);
  }
  static Cover cover(const Part& part, const Span& s) {
    const int size = static_cast<int>(part.number[0]);
    bool any = false, all = true;
    for (int r = s.row / size; r <= (s.row + s.rows - 1) / size; ++r) {
      for (int c = s.key / size; c <= (s.key + s.keys - 1) / size; ++c) {
        const bool kept = at(part, s.batch, s.head, r, c);
        any |= kept;
        all &= kept;
        if (any && !all) return Cover::kSome;
      }
    }
    return any ? Cover::kAll : Cover::kNone;
  }
  static bool allows(const Part& part, const Place& p) {
    const int size = static_cast<int>(part.number[0]);
    return at(part, p.batch, p.head, p.row / size, p.j / size);
  }
};

}  // namespace fovea::cuda
