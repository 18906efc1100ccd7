// The steps of an optimiser, divided over ranks that see each other's memory (Rajbhandari et al. 2020,
// stage 1 of ZeRO): each rank updates some of the parameters, and all take the new values from there. A
// parameter is updated as a whole, so the numbers are those of Optimiser, bit for bit.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "train/descent/optimiser.h"
#include "train/sums/part_sums.h"

namespace fovea::train {

class SharedOptimiser : public Updates {
 public:
  // Bytes of a rank that all see.
  static size_t bytes_of(const std::vector<ParameterGroup>& groups, int ranks);
  // `sums` has so many, and is in shared memory.
  SharedOptimiser(const std::vector<ParameterGroup>& groups, const Recipe& recipe, PartSums& sums,
                  const Ranks& ranks);

  // Which parameters this rank updates, group after group. It needs no gradient of others.
  const std::vector<bool>& own() const { return own_; }

  void zero_grad() override;
  // Called by all ranks. If one is lost meanwhile, the state is that of before, and so are the parameters.
  void make(double rate_factor, double most, const std::string& step) override;
  // Of all parameters, on every rank.
  std::map<std::string, torch::Tensor> state() const override;
  void restore(const std::map<std::string, torch::Tensor>& state) override;

 private:
  // The norms of all gradients.
  torch::Tensor norms(const Optimiser& own, const std::string& what);

  PartSums& sums_;
  std::vector<torch::Tensor> parameters_;
  std::vector<bool> own_;
  // In memory that all see: what the parameters become, and slots before and after a step, in turn. An
  // Optimiser sees all of them, and updates those that are given a gradient, which are the own ones.
  std::vector<torch::Tensor> values_;
  std::array<std::optional<Optimiser>, 2> sides_;
  std::array<std::byte*, 2> own_slots_{};
  size_t own_bytes_ = 0;  // of slots
  size_t side_ = 0;       // which slots are those of before
};

}  // namespace fovea::train
