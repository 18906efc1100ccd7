#include "cli/train_arguments.h"

#include <fmt/format.h>

namespace fovea::cli {

std::vector<std::string> arguments_of(const systems::TrainRequest& request, int threads) {
  std::vector<std::string> out = {"fovea", "train", request.system};
  if (request.resume) out.push_back("--resume");
  if (request.overwrite) out.push_back("--overwrite");
  const auto add = [&](const char* name, const std::string& value) {
    out.insert(out.end(), {name, value});
  };
  if (!request.data.empty()) add("--data", request.data);
  for (const std::string& assignment : request.set) add("--set", assignment);
  if (request.epochs) add("--epochs", std::to_string(*request.epochs));
  add("--seed", std::to_string(request.seed));
  add("--data-seed", std::to_string(request.data_seed));
  add("--seeds", std::to_string(request.seeds));
  if (request.folds > 0) add("--folds", std::to_string(request.folds));
  add("--device", request.device);
  add("--checkpoint", fmt::format("{}", request.save_every_seconds));
  add("--threads", std::to_string(threads));
  add("--out", request.out.string());
  if (!request.only.empty()) add("--only", request.only);
  if (request.parts > 0) add("--parts", std::to_string(request.parts));
  add("--sums", request.sums);
  return out;
}

}  // namespace fovea::cli
