// The start of every task of bert: pieces and sizes, learned and chosen or taken from a folder; the
// model made of them; and what a run stores.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "systems/bert/folder.h"
#include "systems/bert/model.h"
#include "systems/bert/sequences.h"
#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/exports.h"
#include "train/task.h"

namespace fovea::systems::bert {

class Start {
 public:
  explicit Start(const RunOptions& run_options);

  // Learns pieces from the lines, or reads the folder. The heads are the task's. If nothing is
  // trained, further heads of the folder stay. UsageError if an option is given that the folder
  // decides.
  void prepare(const std::vector<std::string>& lines, const HeadsWanted& heads,
               std::vector<std::string> classes = {});
  Assets assets() const;
  void restore(const Assets& assets);
  BertModel build();
  // Copies the folder's weights into the parts of the model that have them.
  void load();
  // A remark on the folder for the user; empty: none.
  std::string in_words() const;

  Sequences sequences() const { return Sequences(*pieces_, sizes_.context); }
  const text::WordPiece& pieces() const { return *pieces_; }
  const nn::BertOptions& sizes() const { return sizes_; }
  BertModel& model() { return model_; }
  const std::vector<std::string>& classes() const { return classes_; }
  torch::Device device() const { return run_options_.device; }
  Written exported() const { return folder_files(*model_, *pieces_, classes_); }
  // Two groups: biases and layer norms have no weight decay.
  std::vector<train::ParameterGroup> groups(torch::nn::Module& module) const;

 private:
  const RunOptions run_options_;
  const OptionValues& options_;
  std::optional<Folder> folder_;
  std::optional<text::WordPiece> pieces_;
  nn::BertOptions sizes_;
  HeadsWanted heads_;
  std::vector<std::string> classes_;
  BertModel model_{nullptr};
};

// What the tasks share. Task is the other base class.
template <class Task>
class BertTask : public Task, public Exports {
 public:
  template <class... Arguments>
  explicit BertTask(const RunOptions& run_options, Arguments&&... arguments)
      : Task(std::forward<Arguments>(arguments)...), start_(run_options) {}

  Assets assets() const override { return start_.assets(); }
  void restore(const Assets& assets) override { start_.restore(assets); }
  std::shared_ptr<torch::nn::Module> build() override { return start_.build().ptr(); }
  void fit(train::Fit& fit) override {
    start_.load();
    Task::fit(fit);
  }
  std::vector<train::ParameterGroup> parameter_groups(torch::nn::Module& module) const override {
    return start_.groups(module);
  }
  Written exported() const override { return start_.exported(); }

 protected:
  Start start_;
};

}  // namespace fovea::systems::bert
