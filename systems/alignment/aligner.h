// An aligner gives a distribution over source tokens for each target token. Attention has one. IBM
// model 1 finds one by counting. Its neural form is attention whose log-sum-exp is the
// log-likelihood.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "train/option_values.h"
#include "translate/model.h"

namespace fovea::systems {

class Aligner : public torch::nn::Module {
 public:
  // Mean negative log-likelihood of a target token; undefined if the aligner has none.
  virtual at::Tensor loss(const translate::Batch&, double /*label_smoothing*/) { return {}; }
  // [B, T, S]; a row may sum to less than one: the rest goes to no source word (or to EOS).
  virtual at::Tensor weights(const translate::Batch&) = 0;
  // Whether a target word may stay without a link: if the rest of its row is larger than the weight
  // of every source word.
  virtual bool has_null() const { return false; }

  // Training by counting instead of by gradient: one pass, which returns the mean negative
  // log-likelihood before it.
  virtual bool counts() const { return false; }
  virtual double count(const std::vector<const translate::Tokens*>&) { return 0; }
  virtual std::string bytes() const { return {}; }
  virtual void restore(const std::string& /*bytes*/, const std::string& /*name*/) {}
};

// "bahdanau", "luong", "transformer": forced decoding with that system's model; "neural", "ibm1",
// "diagonal".
std::shared_ptr<Aligner> make_aligner(const std::string& method, const OptionValues&,
                                      const translate::Vocabularies&);
std::shared_ptr<Aligner> make_neural(const OptionValues&, const translate::Vocabularies&);
std::shared_ptr<Aligner> make_ibm1(const translate::Vocabularies&);

}  // namespace fovea::systems
