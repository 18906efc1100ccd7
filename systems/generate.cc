#include "systems/generate.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "io/folder.h"
#include "io/write.h"
#include "systems/system.h"
#include "train/task.h"

namespace fovea::systems {

Written generate(const GenerateRequest& request) {
  const System& system = find(request.system);
  OptionValues option_values = system.option_values();
  for (const std::string& assignment : request.set) option_values.set(assignment);
  const std::unique_ptr<Task> task = system.make({std::move(option_values)});
  task->read({.seed = request.seed});
  Written written = task->write();
  if (written.files.empty())
    throw UsageError(fmt::format("{} has no items to write; data: {}", request.system,
                                 system.info.formats.empty() ? "" : system.info.formats.front()));
  for (const auto& [name, bytes] : written.files)
    if (!request.overwrite && std::filesystem::exists(request.out / name))
      throw UsageError(fmt::format("{}: is there already: --overwrite replaces it",
                                   (request.out / name).string()));
  io::make_folder(request.out);
  for (const auto& [name, bytes] : written.files) {
    io::make_folder((request.out / name).parent_path());
    io::write_file(request.out / name, bytes);
  }
  return written;
}

}  // namespace fovea::systems
