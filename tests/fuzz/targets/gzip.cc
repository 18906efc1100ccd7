// The one door of files: packed or not.
#include "data/file.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_gzip(std::string_view bytes) {
  const std::string path = folder().write("a.gz", "\x1f\x8b" + std::string(bytes));
  reads(path, [&] { data::read_file(path); });
}
const Registration gzip{"gzip", fuzz_gzip};

}  // namespace
}  // namespace fovea::fuzz
