// A sentence as a decoder reads it with one head: states to mix, keys to score, and how many of them
// are real.
#pragma once

#include "fovea/attend.h"

namespace fovea::translate {

struct Memory {
  at::Tensor states, keys, lengths;  // [B, S, width], [B, S, width of a key], int [B]

  // query [B, width of a query] -> [B, width of a state]
  at::Tensor context(const at::Tensor& query, const Choices& choices) const {
    return attend(query.unsqueeze(1).unsqueeze(1), keys.unsqueeze(1), states.unsqueeze(1), choices,
                  {.key_lengths = lengths})
        .squeeze(1)
        .squeeze(1);
  }
  // [B, S]
  at::Tensor weights(const at::Tensor& query, const Choices& choices) const {
    return fovea::weights(query.unsqueeze(1).unsqueeze(1), keys.unsqueeze(1), choices, {},
                          {.key_lengths = lengths})
        .weights.squeeze(1)
        .squeeze(1);
  }
  // Row r becomes what was row `rows[r]`.
  void select(const at::Tensor& rows) {
    for (at::Tensor* t : {&states, &keys, &lengths}) *t = t->index_select(0, rows.to(t->device()));
  }
};

}  // namespace fovea::translate
