// SHA-256 (FIPS 180-4) of a file's bytes, as 64 hexadecimal digits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::io {

class Sha256 {
 public:
  enum class Code { kFastest, kPlain };  // the same sums; kPlain is what every processor runs
  explicit Sha256(Code code = Code::kFastest);
  void add(std::string_view bytes);
  // Of all that was added; nothing may be added afterwards.
  std::string hex();

 private:
  using State = std::array<uint32_t, 8>;

  void (*block_)(State&, const uint8_t*);
  State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes that do not fill a block yet
  size_t held_ = 0;
  uint64_t total_ = 0;
};

std::string sha256(std::string_view bytes);

}  // namespace fovea::io
