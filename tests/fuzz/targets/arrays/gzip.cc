// The one door of files: packed or not.
#include "data/files/file.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_gzip(std::string_view bytes) {
  reads("a.gz", [&] { data::unpacked("\x1f\x8b" + std::string(bytes), "a.gz"); });
}
const Registration gzip{"gzip", fuzz_gzip};

}  // namespace
}  // namespace fovea::fuzz
