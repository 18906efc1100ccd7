#include "systems/run/export.h"

#include <fmt/format.h>

#include "io/folder.h"
#include "io/write.h"
#include "train/exports.h"
#include "train/task.h"
#include "train/usage_error.h"

namespace fovea::systems {

Written export_run(const Run& run, const std::filesystem::path& out, bool overwrite) {
  const auto* task = dynamic_cast<const Exports*>(run.task.get());
  if (task == nullptr)
    throw UsageError(
        fmt::format("{}: its weights have no form of others; those of bert and next-word have",
                    run.system->info.name));
  Written written = task->exported();
  for (const auto& [name, bytes] : written.files)
    if (!overwrite && std::filesystem::exists(out / name))
      throw UsageError(
          fmt::format("{}: is there already: --overwrite replaces it", (out / name).string()));
  io::make_folder(out);
  for (const auto& [name, bytes] : written.files) io::write_file(out / name, bytes);
  return written;
}

}  // namespace fovea::systems
