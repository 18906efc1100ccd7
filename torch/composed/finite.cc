#include "torch/composed/finite.h"

#include <string>

namespace fovea::composed {

void FirstSpoiled::look(const Block& block, const at::Tensor& spoiled) {
  const at::Tensor places = spoiled.nonzero().cpu();  // in the order of item, head, row
  if (places.size(0) == 0) return;
  const auto* place = places.const_data_ptr<int64_t>();
  const std::array<int64_t, 3> here{block.batch + place[0], place[1],
                                    block.i.view(-1)[place[2]].item<int64_t>()};
  if (!first_ || here < *first_) first_ = here;
}

void FirstSpoiled::check() const {
  if (first_) refuse_row((*first_)[0], (*first_)[1], (*first_)[2]);
}

void refuse_row(int64_t batch, int64_t head, int64_t row) {
  throw InvalidArgument("score: NaN or +infinity in the row of batch " + std::to_string(batch) +
                        ", head " + std::to_string(head) + ", query " + std::to_string(row) +
                        ", expected finite scores (check_finite)");
}

}  // namespace fovea::composed
