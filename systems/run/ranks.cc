#include "systems/run/ranks.h"

#include "data/files/json.h"
#include "systems/run/machine.h"
#include "systems/run/member_training.h"
#include "systems/run/run_config.h"
#include "systems/run/training.h"
#include "train/failure.h"
#include "train/ranks/agreement.h"
#include "train/ranks/ranks.h"
#include "train/usage_error.h"

namespace fovea::systems {
namespace {

// What every rank must have been asked alike.
Json facts_of(const TrainRequest& request, const OptionValues& options) {
  // Sums in any order promise no bits.
  Json facts = request.sums == kOrderedSums ? train::facts_of_bits(device_of(request.device))
                                            : train::facts_of_program();
  facts["system"] = request.system;
  facts["--data"] = request.data.empty() ? "generated" : "given";
  facts["--seed"] = request.seed;
  facts["--data-seed"] = request.data_seed;
  facts["--seeds"] = request.seeds;
  facts["--folds"] = request.folds;
  facts["--only"] = request.only;
  facts["--threads"] = request.threads;
  facts["--device"] = request.device;
  facts["--parts"] = request.parts;
  facts["--sums"] = request.sums;
  facts["option"] = options.json();
  return facts;
}

// One training after the other, as rank 0 says.
void follow(const TrainRequest& request, const OptionValues& options, train::Ranks& ranks) {
  train::Progress silent(train::Progress::Style::kSilent);
  for (;;) {
    const std::string text = ranks.broadcast("", kNextTraining);
    if (text.empty()) return;
    Json config = parse_config(text, ranks.name_of(0));
    config["data"] = request.data.empty() ? Json() : Json(request.data);
    use_threads(static_cast<int>(config.at("threads").get<int64_t>()));
    MemberTraining training(find(request.system),
                            {options, config.at("seed").get<uint64_t>(), device_of(request.device)},
                            config, &ranks);
    training.read(silent);
    training.build();
    if (ranks.broadcast("", kNextTraining) == kUnfinished) training.follow(silent);
  }
}

}  // namespace

std::optional<Json> train_as_rank(const TrainRequest& request, const train::Place& place,
                                  double timeout, train::Progress& progress) {
  const OptionValues options = option_values_of(find(request.system), request);
  train::Ranks ranks(place, timeout);
  try {
    train::agree(ranks, facts_of(request, options));
    if (!ranks.first()) {
      follow(request, options, ranks);
      return std::nullopt;
    }
    Json report = Training(request, progress, &ranks).run();
    ranks.broadcast("", "the others to end");
    return report;
  } catch (const train::RankLost&) {
    throw;
  } catch (const std::exception& error) {
    ranks.leave(train::words_of(error));
    throw;
  }
}

}  // namespace fovea::systems
