// The list of a run's files.
#include "train/run/manifest.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_manifest(std::string_view bytes) {
  const std::string path = "manifest.json";
  reads(path, [&] {
    const train::Manifest read = train::Manifest::parse(std::string(bytes), path);
    const std::string text = read.text();
    require(train::Manifest::parse(text, path).text() == text, "what is read is written the same");
  });
}
const Registration manifest{"manifest", fuzz_manifest};

}  // namespace
}  // namespace fovea::fuzz
