// Trains a RUN: one, or several seeds and folds. An existing RUN is not touched before the data are
// read, and not replaced before all of the new one is trained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "systems/run/session.h"
#include "train/run/draft.h"
#include "train/run/run_lock.h"

namespace fovea::train {
class Ranks;
}

namespace fovea::systems {

// The system's options, with what the request sets.
OptionValues option_values_of(const System& system, const TrainRequest& request);

class Training {
 public:
  // Throws if the request is wrong. The RUN is locked from now on. `ranks`: those that train together, of
  // which this is the first; null: this process trains alone.
  Training(const TrainRequest& request, train::Progress& progress, train::Ranks* ranks = nullptr);

  // Threads of each training: the requested number, or that of the run that is resumed; otherwise
  // all, divided among seeds and folds whether or not they are trained at the same time, or one for a
  // training of small steps. The results of some libtorch kernels depend on it.
  int threads() const { return threads_; }
  // The names of the seeds or folds that are still to be trained, for other processes, which may
  // start from now on. Empty for a RUN without seeds or folds. The data are read once before.
  std::vector<std::string> hand_out();
  // Trains what is left, and returns what `evaluate` returns for the test split.
  Json run();

 private:
  // One training: a system, its settings, one seed, one fold.
  struct Member {
    std::string name;  // its folder within the RUN; empty: the RUN itself
    uint64_t seed = 1;
    int64_t fold = 0;
  };
  // A folder that is removed with the object, if the object made it and it is still empty.
  struct Place {
    explicit Place(const std::filesystem::path& path);
    ~Place();
    std::filesystem::path path;
    bool made = false;
  };

  static std::vector<Member> members_of(const TrainRequest& request);
  bool several() const { return !members_.front().name.empty(); }
  int choose_threads() const;
  int64_t choose_parts() const;
  Json config_of(const Member& member) const;
  Json config_of_all(const Json& first) const;
  std::vector<std::string> names_of_all() const;
  Json train_member(const Member& member);
  Json evaluate_place(const std::filesystem::path& place) const;
  Json publish_all(const std::vector<Json>& reports);
  // training_folder.cc:
  void check_room() const;
  std::optional<Json> config_before() const;
  bool is_finished(const std::filesystem::path& place, const Json& config) const;
  void open_draft(const Json& config);
  void open_member_draft(train::Draft& draft, const std::filesystem::path& place,
                         const Json& config) const;

  TrainRequest request_;
  train::Progress& progress_;
  const System& system_;
  const OptionValues option_values_;
  const std::vector<Member> members_;
  Place place_;
  std::optional<train::RunLock> lock_;
  train::Draft draft_;
  train::Ranks* ranks_;
  int threads_ = 0;
  int64_t parts_ = 1;
  bool opened_ = false;  // the draft is this training's
};

}  // namespace fovea::systems
