// Classes of the nodes of a graph, from a few labelled ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/formats/bags.h"
#include "data/formats/graph.h"
#include "systems/gat/divided.h"
#include "systems/gat/known.h"
#include "systems/gat/looks.h"
#include "systems/gat/model.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/descent/held_items.h"

namespace fovea::systems::gat {

// An item is a node. A step is one pass over the whole graph; the loss is that of the training
// nodes. apply.cc has predict and explain.
class GraphAttention : public ClassificationTask, public train::HeldItems {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override;
  std::string read_in_words() const override;
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets& assets) override;
  std::shared_ptr<torch::nn::Module> build() override;
  bool ranks_hold_items() const override {
    return run_options_.options.text("partition") != "whole";
  }
  // Where the graph is divided: of the nodes that this rank holds.
  Loss loss(const Batch& batch) override;
  // Where the graph is divided, all ranks call it, unless an evaluation has found them already.
  torch::Tensor logits(std::span<const int64_t> items) override;
  // The authors keep the last weights whose loss and accuracy on the validation nodes were both the
  // best so far: `joint` counts these epochs. (Their patience of 100 counts from the last epoch in
  // which either was the best. 300 from the last epoch in which both were gives about the same.)
  // Every epoch is one step, so its evaluation must take no longer than one pass.
  void begin_epoch(int64_t, const std::vector<Metrics>& history) override;
  // `joint` counts epochs that were the best; the epochs between two of them do not count.
  bool ties_go_to_the_lower_loss() const override { return false; }
  Metrics validate() override;
  // Generated graphs: whether the neighbour with the most weight (the heads of the first layer
  // together, the node itself aside) is not a survey.
  std::vector<int> hits(std::span<const int64_t> items) override;
  Written write() const override;
  // A line is a node: its id, or its number from 0 if nodes have no ids; or several, if no id is the
  // whole line. A line that names a folder is for all nodes of the graph in it, labelled or not. Nodes
  // in later lines are of that graph.
  void predict(Input input, std::ostream& out) override;
  // A user's own graph may have no labels to evaluate with.
  Evaluation evaluate(Split split) override;
  // Neighbourhoods of the nodes that the input names, or of some test nodes with neighbours. The
  // first line may name the folder of another graph, as for predict: then of its nodes.
  std::vector<explain::Explanation> explain(Input* input) override;

 private:
  void read_whole(const Source& source);
  // This rank's part where ranks divide the graph, otherwise all of it.
  void set_input();
  // The classes of some nodes; p [nodes, classes].
  Answered answered(const std::vector<std::pair<std::string, int64_t>>& asked,
                    const torch::Tensor& p) const;
  torch::Tensor index_of(const std::vector<int64_t>& places) const;
  Surveyed surveyed() const { return {.sees = sees_, .survey = survey_, .part = part_.get()}; }
  // All ranks: the scores of some nodes, and where they look, each found by the rank that holds it.
  Judged judged_together(const std::vector<int64_t>& nodes);
  // Reads the graph of the training, unless it is the current one.
  void read_own();
  // For what one rank answers, or draws.
  void read_alone(const Source& source);
  // A folder, if the current graph has no node of that name.
  bool is_graph(std::string_view text) const;
  void read_other(std::string_view folder);
  void check_fits();

  Source source_;
  std::optional<Source> own_;  // if the current graph is another one
  data::CitationGraph graph_;
  data::Csr sees_;
  data::Scaling scaling_;  // empty: rows are divided by their sums
  GraphInput input_;
  size_t edges_ = 0;                              // as in the file
  std::shared_ptr<const train::GraphPart> part_;  // null: this process has the whole graph
  std::optional<Judged> judged_;                  // while an evaluation of a divided graph runs
  std::vector<uint8_t> survey_;
  Known known_;
  double least_loss_ = 0, best_accuracy_ = 0, joint_ = 0;  // of the epochs so far
  std::shared_ptr<Model> model_;
};

std::unique_ptr<Task> make_graph_attention(const RunOptions& run_options);

}  // namespace fovea::systems::gat
