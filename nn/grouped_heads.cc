#include "fovea/nn/grouped_heads.h"

#include <ATen/ATen.h>

#include "fovea/nn/rotary.h"
#include "nn/products/product.h"
#include "nn/split_heads.h"

namespace fovea::nn {
namespace {

void check(const GroupedHeadsOptions& o) {
  if (o.width <= 0 || o.heads <= 0 || o.width % o.heads != 0)
    throw InvalidArgument("heads: " + std::to_string(o.heads) +
                          ", expected a divisor of the width " + std::to_string(o.width));
  if (o.key_heads < 0 || (o.key_heads > 0 && o.heads % o.key_heads != 0))
    throw InvalidArgument("key_heads: " + std::to_string(o.key_heads) +
                          ", expected a divisor of the " + std::to_string(o.heads) + " heads");
  if (o.rotary_base > 0 && o.width / o.heads % 2 != 0)
    throw InvalidArgument("heads: " + std::to_string(o.heads) + " of width " +
                          std::to_string(o.width / o.heads) +
                          ", expected an even width for rotary positions");
  if (o.dropout < 0 || o.dropout >= 1)
    throw InvalidArgument("dropout: " + std::to_string(o.dropout) + ", expected 0 <= p < 1");
}

}  // namespace

GroupedHeadsImpl::GroupedHeadsImpl(const GroupedHeadsOptions& options) : options_(options) {
  check(options);
  reset();
}

void GroupedHeadsImpl::reset() {
  const int64_t width = options_.width, shared = key_heads() * head_width();
  const auto linear = [&](const char* name, int64_t outputs) {
    return register_module(name,
                           torch::nn::Linear(torch::nn::LinearOptions(width, outputs).bias(false)));
  };
  wq = linear("wq", width);
  wk = linear("wk", shared);
  wv = linear("wv", shared);
  wo = linear("wo", width);
}

at::Tensor GroupedHeadsImpl::turned(const at::Tensor& projected, int64_t heads,
                                    int64_t first) const {
  const at::Tensor x = split_heads(projected, heads);
  return options_.rotary_base > 0 ? rotary(x, first, options_.rotary_base) : x;
}

at::Tensor GroupedHeadsImpl::forward(const at::Tensor& x, const Structure& structure) {
  const at::Tensor heads =
      attend(turned(projected(x, wq), options_.heads, 0), turned(projected(x, wk), key_heads(), 0),
             split_heads(projected(x, wv), key_heads()), {.structure = structure},
             {.dropout_p = is_training() ? options_.dropout : 0.0});
  return projected(join_heads(heads), wo);
}

at::Tensor GroupedHeadsImpl::step(const at::Tensor& x, StepCache& cache) {
  const int64_t before = cache.length();
  cache.append(at::cat({join_heads(turned(wk(x), key_heads(), before)), wv(x)}, -1));
  const HeadsCache all = cache.heads(key_heads());
  return wo(join_heads(attend(turned(wq(x), options_.heads, before), all.key, all.value,
                              {.structure = Causal{}}, {.query_offset = PerItem(before)})));
}

at::Tensor GroupedHeadsImpl::weights(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return fovea::weights(turned(wq(x), options_.heads, 0), turned(wk(x), key_heads(), 0),
                        {.structure = Causal{}})
      .weights;
}

}  // namespace fovea::nn
