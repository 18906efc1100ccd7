// IBM model 1 (Brown et al. 1993) by expectation maximisation, x_0 the empty word:
//   p(y | x) = prod_t 1/(S+1) sum_j p(y_t | x_j)
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <unordered_map>

#include "fovea/error.h"
#include "systems/alignment/aligner.h"

namespace fovea::systems {
namespace {

using translate::kBegin;  // stands for the empty word
using translate::Tokens;

constexpr double kLeast = 1e-6;  // a smaller entry is not written

class Ibm1 : public Aligner {
 public:
  explicit Ibm1(const translate::Vocabularies& sizes)
      : sources_(sizes.source), targets_(sizes.target) {}

  bool has_null() const override { return true; }
  bool counts() const override { return true; }

  double count(const std::vector<const Tokens*>& pairs) override {
    std::unordered_map<uint64_t, double> counts;
    std::vector<double> totals(static_cast<size_t>(sources_), 0.0), terms;
    double log_likelihood = 0;
    int64_t tokens = 0;
    const double first =
        1.0 / static_cast<double>(targets_);  // before the first pass all are equal
    for (const Tokens* pair : pairs) {
      const std::vector<int64_t> from = with_null(*pair);
      for (const int64_t y : pair->target.ids) {
        double sum = 0;
        terms.clear();
        for (const int64_t x : from)
          sum += terms.emplace_back(table_.empty() ? first : probability(x, y));
        for (size_t j = 0; j < from.size(); ++j) {
          counts[key(from[j], y)] += terms[j] / sum;
          totals[static_cast<size_t>(from[j])] += terms[j] / sum;
        }
        log_likelihood += std::log(sum / static_cast<double>(from.size()));
        ++tokens;
      }
    }
    for (auto& [place, value] : counts) value /= totals[place >> 32];
    table_ = std::move(counts);
    return -log_likelihood / static_cast<double>(std::max<int64_t>(tokens, 1));
  }

  at::Tensor loss(const translate::Batch& batch, double) override {
    double sum = 0;
    int64_t tokens = 0;
    each(batch, [&](int64_t, int64_t, const std::vector<double>& terms, double total) {
      sum -= std::log(std::max(total, 1e-12) / static_cast<double>(terms.size()));
      ++tokens;
    });
    return at::full({}, sum / static_cast<double>(std::max<int64_t>(tokens, 1)));
  }

  at::Tensor weights(const translate::Batch& batch) override {
    at::Tensor out =
        at::zeros({batch.source.size(0), batch.target_out.size(1), batch.source.size(1)});
    auto place = out.accessor<float, 3>();
    each(batch, [&](int64_t b, int64_t t, const std::vector<double>& terms, double total) {
      for (size_t j = 1; total > 0 && j < terms.size(); ++j)
        place[b][t][static_cast<int64_t>(j) - 1] = static_cast<float>(terms[j] / total);
    });
    return out;
  }

  std::string bytes() const override {
    std::string out;
    for (const auto& [place, value] : table_) {
      if (value >= kLeast)
        out += fmt::format("{} {} {:.6g}\n", place >> 32, place & 0xffffffffu, value);
    }
    return out;
  }
  void restore(const std::string& bytes, const std::string& name) override {
    std::istringstream lines(bytes);
    int64_t x = 0, y = 0;
    for (double p = 0; lines >> x >> y >> p;) {
      if (x < 0 || x >= sources_ || y < 0 || y >= targets_) {
        throw InvalidArgument(fmt::format(
            "{}: word {} or {}, expected numbers of the run's vocabularies", name, x, y));
      }
      table_[key(x, y)] = p;
    }
    if (!lines.eof())
      throw InvalidArgument(
          fmt::format("{}: expected lines of two words' numbers and a probability", name));
  }

 private:
  static uint64_t key(int64_t x, int64_t y) {
    return static_cast<uint64_t>(x) << 32 | static_cast<uint64_t>(y);
  }
  static std::vector<int64_t> with_null(const Tokens& pair) {
    std::vector<int64_t> from{kBegin};
    from.insert(from.end(), pair.source.ids.begin(), pair.source.ids.end());
    return from;
  }
  double probability(int64_t x, int64_t y) const {
    const auto found = table_.find(key(x, y));
    return found == table_.end() ? 0 : found->second;
  }
  // Calls body(sentence, position, p(y_t | x_0), p(y_t | x_1) …, their sum) for every target word
  // but EOS.
  template <class Body>
  void each(const translate::Batch& batch, Body body) const {
    const at::Tensor source = batch.source.cpu(), target = batch.target_out.cpu();
    const auto x = source.accessor<int64_t, 2>(), y = target.accessor<int64_t, 2>();
    std::vector<double> terms;
    for (int64_t b = 0; b < source.size(0); ++b) {
      for (int64_t t = 0;
           t < target.size(1) && y[b][t] != translate::kEnd && y[b][t] != translate::kPad; ++t) {
        terms = {probability(kBegin, y[b][t])};
        double total = terms[0];
        for (int64_t j = 0; j < source.size(1) && x[b][j] != translate::kEnd; ++j)
          total += terms.emplace_back(probability(x[b][j], y[b][t]));
        body(b, t, terms, total);
      }
    }
  }

  int64_t sources_, targets_;
  std::unordered_map<uint64_t, double> table_;
};

}  // namespace

std::shared_ptr<Aligner> make_ibm1(const translate::Vocabularies& vocabularies) {
  return std::make_shared<Ibm1>(vocabularies);
}

}  // namespace fovea::systems
