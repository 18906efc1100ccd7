#include "systems/inverse_cooking/judge.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "data/generated/plates.h"

namespace fovea::systems::inverse_cooking {
namespace {

bool is_one_of(const LabelSet& set, int64_t one) {
  return std::find(set.begin(), set.end(), one) != set.end();
}

}  // namespace

void WordJudge::add(const std::vector<std::string>& words, const LabelSet& set) {
  std::set<int64_t> named;
  for (const int64_t one : named_in(words, names_))
    if (one >= 0) named.insert(one);
  const auto own =
      std::count_if(named.begin(), named.end(), [&](int64_t one) { return is_one_of(set, one); });
  recipes_ += 1;
  all_in_ += own == static_cast<int64_t>(named.size());
  told_ += static_cast<double>(own);
  listed_ += static_cast<double>(set.size());
}

void WordJudge::add_weights(const std::vector<std::string>& words, const LabelSet& set,
                            const torch::Tensor& weights, int64_t regions) {
  const Ids named = named_in(words, names_);
  const auto& colours = data::plate_colours();
  for (size_t i = 0; i < words.size(); ++i) {
    const torch::Tensor row = weights[static_cast<int64_t>(i)];
    const double on_picture = row.slice(0, 0, regions).sum().item<double>();
    if (std::find(colours.begin(), colours.end(), words[i]) != colours.end()) {
      plates_ += 1;
      plates_on_picture_ += on_picture;
    }
    if (!is_one_of(set, named[i])) continue;
    const auto best = static_cast<size_t>(row.slice(0, regions).argmax().item<int64_t>());
    words_ += 1;
    on_picture_ += on_picture;
    hits_ += set[best] == named[i];
  }
}

void WordJudge::put(Evaluation& out, const std::string& ending) const {
  out.put("named_in_set" + ending, all_in_ / recipes_);
  out.put("told" + ending, told_ / listed_);
  if (words_ > 0) {
    out.attention["hit_rate"] = hits_ / words_;
    out.attention["picture_share_ingredients"] = on_picture_ / words_;
  }
  if (plates_ > 0) out.attention["picture_share_plates"] = plates_on_picture_ / plates_;
}

}  // namespace fovea::systems::inverse_cooking
