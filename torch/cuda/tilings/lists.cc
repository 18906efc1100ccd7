#include "torch/cuda/tilings/lists.h"

#include <algorithm>

#include "torch/cuda/program.h"

namespace fovea::cuda {
namespace {

constexpr int kStepEntries = 32;  // texts/drivers/mma/mma_lists.h

}  // namespace

// Found by trying on an H200.
ListsTiling lists_tiling(bool panels) { return {.panels = panels}; }

std::string declared(const ListsTiling& t) {
  const auto constant = [](const char* name, int n) {
    return "constexpr int " + std::string(name) + " = " + std::to_string(n) + "; ";
  };
  std::string text = constant("kMmaWarps", t.warps) + constant("kRoom", t.room) +
                     constant("kKeyStep", t.step) + constant("kQueryStep", t.step);
  for (const char* name : {"kForwardKeys", "kKeys", "kQueries"}) text += constant(name, t.other);
  for (const char* name : {"kResident", "kQueryResident", "kKeyResident"})
    text += constant(name, t.resident);
  return text;
}

ListsBytes lists_bytes(int64_t width, int64_t value_width, size_t modifiers, const ListsTiling& t) {
  constexpr int64_t kNumber = 2, kEntry = 8, kRandom = 8, kRowData = 40, kFloat = 4, kApart = 4;
  const int64_t pad = t.panels ? 0 : 8, row = kNumber * (width + pad),
                value_row = kNumber * (value_width + pad), own = 16 * t.warps;
  const int64_t lists = own * kEntry * (t.room + kApart),
                rows = own * row + t.other * (2 * row + kFloat) + 32 * t.warps;
  const auto whole = [&](int64_t bytes) {
    const int64_t piece = t.panels ? 1024 : 16;  // where panels start and a block's memory ends
    return (bytes + piece - 1) / piece * piece;
  };
  // In the place of the lists lie values and gradients of the output, where lists do not serve.
  const int64_t numbers = kFloat * (3 + static_cast<int64_t>(modifiers)),
                both = std::max(lists, (own + t.other) * value_row);
  return {whole(rows + std::max(lists, 2 * t.other * value_row) + own * kRandom),
          whole(rows + both + own * (kRowData + numbers)),
          whole(rows + both + t.other * (kRowData + 2 * kFloat))};
}

std::string lists_decline(const Call& call) {
  const bool packed = is_packed(call.choices.structure);
  if (call.query.size(packed ? 0 : 2) * (call.query.size(1) / key_heads(call)) >= INT32_MAX)
    return "more rows that share a key than an entry can name";
  const auto& normaliser = call.choices.normaliser;
  if (std::holds_alternative<Sparsemax>(normaliser)) return {};
  if (const auto* entmax = std::get_if<Entmax>(&normaliser)) {
    constexpr double kLeast = 1.0 / (1 << 12);  // texts/normalisers/entmax.h: below it is softmax
    if (entmax->alpha_tensor.defined()) return "alpha that is an array";
    return entmax->alpha - 1 < kLeast ? "alpha of 1" : "";
  }
  if (const auto* top_k = std::get_if<TopK>(&normaliser)) {
    const int most = lists_tiling(false).room - kStepEntries - 1;
    return top_k->k > most ? "k above " + std::to_string(most) : "";
  }
  return "a normaliser of another kind";
}

}  // namespace fovea::cuda
