// A task on pictures that have classes: reading, scaling and splitting them, answers and what is
// shown. A system adds its model and its view.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "data/pictures/pictures.h"
#include "train/classification_task.h"

namespace fovea::systems {

// The options that every such system has.
std::vector<Option> picture_options();

struct ShownPicture {
  std::string name;
  torch::Tensor pixels;               // [channels, side, side], as the model sees it
  std::optional<int64_t> label = {};  // its class, where it is known
  std::optional<int64_t> item = {};   // of the task's own
};

// Pictures of one group.
struct PictureGroup {
  std::string name;
  torch::Tensor pixels;  // [items, channels, side, side]
};

// A map [height, width] as pixels; `black` and `white` are the numbers that are drawn black and
// white.
explain::Picture grey(const torch::Tensor& map, double black, double white);

class PictureTask : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source&) override;
  std::string read_in_words() const override;
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  Written write() const override {
    return {.files = data::mnist_files(data::digit_sets_of(pictures_))};
  }
  // A line is the path of a picture, or of a folder for pictures with channels. The answer is path,
  // class, probability, and the system's remark.
  void predict(Input, std::ostream&) override;
  size_t lines_together() const override { return 1; }
  std::vector<explain::Explanation> explain(Input*) override;

 protected:
  // Generates the pictures, if the user gives none.
  virtual data::DigitSets generated(uint64_t seed) = 0;
  // [items, classes] for pictures [items, channels, side, side].
  virtual torch::Tensor judged(const torch::Tensor& pixels) = 0;
  virtual std::string remark(const torch::Tensor& /*pixels*/) { return ""; }
  virtual std::vector<explain::Explanation> drawn(const std::vector<ShownPicture>&) = 0;

  torch::Tensor logits(std::span<const int64_t> items) override { return judged(pixels(items)); }
  torch::Tensor pixels(std::span<const int64_t> items) const;
  // Test pictures by class, at most `of_a_class` of each; without test pictures, each picture that
  // is shown.
  std::vector<PictureGroup> groups(const std::vector<ShownPicture>& shown, size_t of_a_class) const;
  // Class and probability: "cat, p = 0.912"; where the class is known, whether that is right.
  std::string outcome(const ShownPicture& picture);
  // The numbers that the model sees for black and white.
  double black() const { return -mean_ / deviation_; }
  double white() const { return (1 - mean_) / deviation_; }

  data::Pictures pictures_;  // after restore only their size and classes

 private:
  torch::Tensor scaled(const torch::Tensor& bytes) const;
  ShownPicture shown(const std::string& path) const;
  // Of the first test pictures of each class the one that is told best; the surest class first.
  std::vector<ShownPicture> surest_of_each_class();

  double mean_ = 0, deviation_ = 1;  // of the training pictures' pixels, from 0 to 1
  bool restored_ = false;
};

}  // namespace fovea::systems
