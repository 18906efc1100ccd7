#include "systems/bert/sequences.h"

#include <torch/torch.h>

namespace fovea::systems::bert {

Sequences::Sequences(const text::WordPiece& pieces, int64_t context)
    : pieces_(pieces),
      context_(context),
      cls_(pieces.number("[CLS]")),
      sep_(pieces.number("[SEP]")) {}

Sequence Sequences::one(std::vector<int64_t> a) const {
  const auto room = static_cast<size_t>(std::max<int64_t>(0, context_ - 2));
  Sequence out;
  if (a.size() > room) {
    out.cut = static_cast<int64_t>(a.size() - room);
    a.resize(room);
  }
  out.ids = {cls_};
  out.ids.insert(out.ids.end(), a.begin(), a.end());
  out.ids.push_back(sep_);
  out.segments.assign(out.ids.size(), 0);
  return out;
}

Sequence Sequences::two(std::vector<int64_t> a, std::vector<int64_t> b) const {
  const auto room = static_cast<size_t>(std::max<int64_t>(0, context_ - 3));
  int64_t cut = 0;
  for (; a.size() + b.size() > room; ++cut) (a.size() > b.size() ? a : b).pop_back();
  Sequence out = one(std::move(a));
  out.cut = cut;
  out.second = out.ids.size();
  out.ids.insert(out.ids.end(), b.begin(), b.end());
  out.ids.push_back(sep_);
  out.segments.resize(out.ids.size(), 1);
  return out;
}

Sequence Sequences::line(std::string_view text) const {
  const size_t tab = text.find('\t');
  if (tab == text.npos) return one(pieces_.encode(text));
  return two(pieces_.encode(text.substr(0, tab)), pieces_.encode(text.substr(tab + 1)));
}

nn::BertInput packed(const std::vector<const Sequence*>& sequences, torch::Device device) {
  std::vector<int64_t> ids, segments;
  std::vector<int32_t> offsets = {0};
  for (const Sequence* one : sequences) {
    ids.insert(ids.end(), one->ids.begin(), one->ids.end());
    segments.insert(segments.end(), one->segments.begin(), one->segments.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  return {.tokens = torch::tensor(ids, torch::kLong).to(device),
          .segments = torch::tensor(segments, torch::kLong).to(device),
          .offsets = torch::tensor(offsets, torch::kInt).to(device)};
}

nn::BertInput packed(const Sequence& sequence, torch::Device device) {
  return packed(std::vector<const Sequence*>{&sequence}, device);
}

}  // namespace fovea::systems::bert
