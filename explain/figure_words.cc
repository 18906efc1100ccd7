#include "explain/figure_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::explain {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

// Whole names and beginnings of names; the longest that fits is taken.
constexpr std::array kBeginnings = {
    Words{"accuracy", "right answers"},
    Words{"aer", "alignment error rate"},
    Words{"auc", "area under the ROC curve"},
    Words{"before_failure", "share of a sentence before the first wrong word"},
    Words{"bits", "bits for each pixel"},
    Words{"error", "wrong answers"},
    Words{"exact", "exactly right"},
    Words{"gaps", "places without a neighbour"},
    Words{"gate_flops", "operations of the gates"},
    Words{"gate_parameters", "parameters of the gates"},
    Words{"flops", "operations"},
    Words{"gru_exact", "GRU: exactly right"},
    Words{"hit_rate", "largest weight on the right item"},
    Words{"identity_error", "largest difference from the formula"},
    Words{"load_max_mean", "largest load of an expert, of the mean load"},
    Words{"loo_mse", "squared error with each observation left out (MSE)"},
    Words{"loo_rmse", "error with each observation left out (RMSE)"},
    Words{"loo_undefined", "observations without a neighbour when left out"},
    Words{"mean_only_rmse", "error of the mean alone (RMSE)"},
    Words{"mlm_accuracy", "masked words that are guessed"},
    Words{"mlm_loss", "loss on masked words"},
    Words{"nsp_accuracy", "next sentences that are told"},
    Words{"nsp_loss", "loss on next sentences"},
    Words{"overflow", "items beyond an expert's capacity"},
    Words{"r2", "share of the variance explained (R²)"},
    Words{"rmse", "error (RMSE)"},
    Words{"zeros", "weights that are exactly 0"},
};

constexpr std::array kTokens = {
    Words{"aer", "AER"},        Words{"bleu", "BLEU"}, Words{"chrf", "chrF"},
    Words{"cider", "CIDEr"},    Words{"f1", "F1"},     Words{"gru", "GRU"},
    Words{"gflops", "GFLOP/s"}, Words{"iou", "IoU"},   Words{"lstm", "LSTM"},
    Words{"mse", "MSE"},        Words{"rmse", "RMSE"},
};

std::vector<std::string_view> tokens_of(std::string_view name) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    out.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string in_words(std::string_view name) {
  std::string out;
  for (const std::string_view token : tokens_of(name)) {
    const auto* known = std::find_if(kTokens.begin(), kTokens.end(),
                                     [&](const Words& one) { return one.first == token; });
    out +=
        fmt::format("{}{}", out.empty() ? "" : " ", known == kTokens.end() ? token : known->second);
  }
  return out;
}

// True for "exact", and also for "exact_10" and "gru_exact_10"; an error is a share where it is one of
// answers, and no difference from a formula or between sizes.
bool is_share(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kShares = {
      "accuracy", "analogy", "exact", "f1", "hit", "precision", "recall", "zeros"};
  const std::vector<std::string_view> tokens = tokens_of(name);
  return tokens.front() == "error" ||
         std::any_of(tokens.begin(), tokens.end(), [](std::string_view token) {
           return std::find(kShares.begin(), kShares.end(), token) != kShares.end();
         });
}

// 618,700.
std::string grouped(double value) {
  const std::string digits = fmt::format("{:.0f}", std::abs(value));
  std::string out = value < 0 ? "−" : "";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// 8.84 · 10⁻⁵.
std::string with_power(double value) {
  static constexpr std::array kRaised = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const auto power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  std::string out =
      fmt::format("{:.2f} · 10{}", value / std::pow(10.0, power), power < 0 ? "⁻" : "");
  for (const char digit : std::to_string(std::abs(power)))
    out += kRaised.at(static_cast<size_t>(digit - '0'));
  return out;
}

}  // namespace

std::string figure_name(const std::string& metric) {
  const Words* best = nullptr;
  for (const Words& one : kBeginnings) {
    const bool fits = metric == one.first || metric.starts_with(std::string(one.first) + "_");
    if (fits && (best == nullptr || one.first.size() > best->first.size())) best = &one;
  }
  if (best == nullptr) return in_words(metric);
  if (metric.size() == best->first.size()) return std::string(best->second);
  return fmt::format("{}: {}", best->second,
                     in_words(std::string_view(metric).substr(best->first.size() + 1)));
}

std::string figure_text(const std::string& metric, double value) {
  if (is_share(metric)) return fmt::format("{:.1f} %", 100 * value);
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e15) {
    const double unit = std::pow(10.0, std::floor(std::log10(size)) - 3);
    return grouped(size < 1e6 && value == std::floor(value) ? value
                                                            : std::round(value / unit) * unit);
  }
  if (size != 0 && (size < 1e-4 || size >= 1e15)) return with_power(value);
  return fmt::format("{:.4g}", value);
}

}  // namespace fovea::explain
