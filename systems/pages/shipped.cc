#include "systems/pages/shipped.h"

#include <algorithm>

#include "fovea/error.h"
#include "io/folder.h"
#include "train/run/draft.h"

namespace fovea::systems {

// Written by the build from systems/shipped: systems/pages/shipped.cmake.
const std::vector<ShippedFile>& shipped_files();

bool is_shipped(const std::string& system) {
  const std::vector<ShippedFile>& files = shipped_files();
  return std::any_of(files.begin(), files.end(),
                     [&](const ShippedFile& file) { return file.run == system; });
}

void unpack_shipped(const std::string& system, const std::filesystem::path& out) {
  io::make_folder(out);
  train::Draft draft(out);
  draft.begin();
  train::Manifest manifest;
  for (const ShippedFile& file : shipped_files()) {
    if (file.run != system) continue;
    if (file.name == train::kManifestFile)
      manifest = train::Manifest::parse(std::string(file.bytes), "shipped " + system);
    else
      draft.write(std::string(file.name), file.bytes);
  }
  for (const ShippedFile& file : shipped_files())
    if (file.run == system && file.name != train::kManifestFile)
      manifest.check(std::string(file.name), file.bytes, "shipped " + system);
  draft.publish(manifest.program, manifest.configuration);
}

}  // namespace fovea::systems
