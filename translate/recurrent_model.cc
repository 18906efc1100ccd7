#include "translate/recurrent_model.h"

#include <ATen/ATen.h>

namespace fovea::translate {

at::Tensor RecurrentModel::logits(const Batch& batch) {
  Decoder decoder = encode(batch);
  return decode(decoder, batch.target_in, nullptr);
}

class RecurrentModel::Steps : public nn::StepModel {
 public:
  Steps(RecurrentModel& model, const Batch& sources, Want want)
      : model_(model), want_(want), decoder_(model.encode(sources)) {}

  void select(const at::Tensor& rows) override {
    decoder_.memory.select(rows);
    for (at::Tensor& state : decoder_.states)
      state = state.index_select(0, rows.to(state.device()));
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    std::vector<at::Tensor> rows;
    const bool look = want_ == Want::kAttention;
    const at::Tensor words = tokens.to(decoder_.memory.states.device()).unsqueeze(1);
    nn::StepOutput out;
    out.logits = model_.decode(decoder_, words, look ? &rows : nullptr).squeeze(1);
    if (look) out.attention = rows.front();
    return out;
  }

 private:
  RecurrentModel& model_;
  Want want_;
  Decoder decoder_;
};

std::unique_ptr<nn::StepModel> RecurrentModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

at::Tensor RecurrentModel::alignment(const Batch& batch) {
  std::vector<at::Tensor> rows;
  Decoder decoder = encode(batch);
  decode(decoder, batch.target_in, &rows);
  return at::stack(rows, 1);
}

}  // namespace fovea::translate
