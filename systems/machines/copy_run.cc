#include "systems/machines/copy_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <vector>

#include "train/descent/finite.h"

namespace fovea::systems::machines {

CopyRun run_copy(Machine& machine, const Encoded& encoded) {
  const torch::NoGradGuard no_grad;
  CopyRun out{.encoded = encoded};
  std::vector<torch::Tensor> written, read;
  out.logits = machine.run(out.encoded.input, [&](const Moment& moment) {
    written.push_back(moment.write.sum(1).argmax(1));
    read.push_back(moment.read.argmax(2));
  });
  train::finite(out.logits.transpose(0, 1), "outputs");
  out.wrong = ((out.logits > 0) != (out.encoded.wanted > 0.5))
                  .logical_and(out.encoded.asked.unsqueeze(2) > 0)
                  .sum(at::IntArrayRef{0, 2})
                  .cpu();
  out.row_written = torch::stack(written).cpu();
  out.row_read = torch::stack(read).cpu();
  return out;
}

torch::Tensor bit_losses(const torch::Tensor& logits, const Encoded& e) {
  return torch::binary_cross_entropy_with_logits(logits, e.wanted, e.asked.unsqueeze(2), {},
                                                 torch::Reduction::None);
}

double hits(const CopyRun& ran, int64_t index, const Sequence& sequence) {
  double found = 0;
  for (int64_t t = 0; t < sequence.length() * sequence.repeats; ++t)
    found += (ran.row_read.narrow(0, sequence.length() + t, 2).select(1, index) ==
              ran.row_written[t % sequence.length()][index])
                 .any()
                 .item<bool>();
  return found;
}

std::string answer(const torch::Tensor& logits, const Sequence& sequence, Job job, int64_t bits) {
  const torch::Tensor said = (logits > 0).cpu();  // [steps, outputs]
  std::vector<std::string> words;
  for (int64_t t = 0; t < answer_steps(sequence, job); ++t) {
    const torch::Tensor step = said[sequence.length() + 1 + t];
    if (job == Job::kRepeatCopy && step[bits].item<bool>()) break;  // its mark for the end
    std::string& word = words.emplace_back();
    for (int64_t i = 0; i < bits; ++i) word += step[i].item<bool>() ? '1' : '0';
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace fovea::systems::machines
