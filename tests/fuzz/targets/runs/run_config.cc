// A run's config.json, and the files it names.
#include "systems/run/run_config.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_run_config(std::string_view bytes) {
  const std::string_view vocabulary = "<pad>\n";
  folder().write(systems::kConfigFile, bytes);
  folder().write("vocabulary.txt", vocabulary);
  train::Manifest manifest{"fuzz", ""};
  manifest.add(systems::kConfigFile, bytes);
  manifest.add("vocabulary.txt", vocabulary);
  folder().write(train::kManifestFile, manifest.text());
  const train::RunFolder run(folder().path());
  reads(folder().path(), [&] {
    const Json config = systems::read_config(run);
    systems::source_of(config);
    systems::read_assets(run, config);
  });
}
const Registration run_config{"run_config", fuzz_run_config};

}  // namespace
}  // namespace fovea::fuzz
