#include "fovea/nn/beam_search.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/layers/best.h"
#include "fovea/error.h"
#include "nn/positive.h"
#include "torch/engine_call.h"

namespace fovea::nn {
namespace {

constexpr double kLeastCoverage = 1e-10;  // log 0 would rule a hypothesis out for one unread word

struct Live {
  std::vector<int64_t> tokens;
  double log_probability = 0;
  std::vector<float> coverage;        // sum of attention over steps, for each source position
  std::vector<at::Tensor> attention;  // one row per token
  int64_t node = 0;                   // in the tree
};

struct Sentence {
  int64_t index = 0, max_length = 0;
  std::vector<Live> beam;
  SearchResult result;
};

void check(const BeamOptions& o) {
  check_positive("beam", o.beam);
  if (o.n_best < 1 || o.n_best > o.beam) {
    throw InvalidArgument("n_best: " + std::to_string(o.n_best) + ", expected 1 to the beam's " +
                          std::to_string(o.beam));
  }
  if (o.length_alpha < 0) throw InvalidArgument("length_alpha: negative, expected 0 or more");
  if (o.no_repeat < 0) throw InvalidArgument("no_repeat: negative, expected 0 or more");
  if (o.coverage_beta < 0) throw InvalidArgument("coverage_beta: negative, expected 0 or more");
}

double coverage_penalty(const std::vector<float>& coverage, double beta) {
  double sum = 0;
  for (const float c : coverage) sum += std::log(std::clamp<double>(c, kLeastCoverage, 1.0));
  return beta * sum;
}

double final_score(const Live& live, const BeamOptions& options) {
  const double length =
      length_penalty(static_cast<int64_t>(live.tokens.size()), options.length_alpha);
  return live.log_probability / length +
         (options.coverage_beta > 0 ? coverage_penalty(live.coverage, options.coverage_beta) : 0);
}

void finish(Sentence& sentence, Live live, bool complete, const BeamOptions& options) {
  Hypothesis done;
  done.log_probability = live.log_probability;
  done.score = final_score(live, options);
  done.complete = complete;
  if (options.keep_attention && !live.attention.empty()) done.attention = at::stack(live.attention);
  done.tokens = std::move(live.tokens);
  auto& list = sentence.result.n_best;
  // Equal scores keep the order in which they were found.
  const auto place = std::upper_bound(
      list.begin(), list.end(), done, [](const Hypothesis& a, const Hypothesis& b) {
        return a.complete != b.complete ? a.complete : a.score > b.score;
      });
  list.insert(place, std::move(done));
}

// The best any live hypothesis can still become: its probability can only fall, the length divide
// it by at most lp(cap).
bool can_improve(const Sentence& sentence, const BeamOptions& options) {
  const auto& finished = sentence.result.n_best;
  if (static_cast<int64_t>(finished.size()) < options.n_best) return true;
  const double to_beat = finished[static_cast<size_t>(options.n_best - 1)].score;
  const double longest = length_penalty(sentence.max_length, options.length_alpha);
  return std::any_of(sentence.beam.begin(), sentence.beam.end(),
                     [&](const Live& live) { return live.log_probability / longest > to_beat; });
}

Live extend(const Live& from, int64_t token, double log_probability, const at::Tensor& attention,
            const BeamOptions& options) {
  Live next = from;
  next.tokens.push_back(token);
  next.log_probability = log_probability;
  if (attention.defined()) {
    if (options.coverage_beta > 0) {
      const at::Tensor row = attention.to(at::kFloat).contiguous();
      next.coverage.resize(static_cast<size_t>(row.numel()), 0.0f);
      for (size_t j = 0; j < next.coverage.size(); ++j)
        next.coverage[j] += row.const_data_ptr<float>()[j];
    }
    if (options.keep_attention) next.attention.push_back(attention);
  }
  return next;
}

struct Candidate {
  double value;   // log-probability of the whole hypothesis
  int64_t place;  // in [beam, vocabulary]
};

// Grows one sentence's beam by a token from its candidates, best first; returns the parents
// (positions in the old beam) of the survivors.
std::vector<int64_t> grow(Sentence& sentence, const std::vector<Candidate>& candidates,
                          int64_t vocabulary, const at::Tensor& attention,
                          const BeamOptions& options) {
  std::vector<Live> survivors;
  std::vector<int64_t> parents;
  const int64_t width = options.beam - static_cast<int64_t>(sentence.result.n_best.size());
  int64_t taken = 0;
  for (const auto& [value, place] : candidates) {
    const int64_t parent = place / vocabulary, token = place % vocabulary;
    const Live& from = sentence.beam[static_cast<size_t>(parent)];
    BeamNode node{from.node, token, value, BeamNode::Fate::kPruned};
    if (taken < width) {
      ++taken;
      Live next = extend(from, token, value, attention.defined() ? attention[parent] : at::Tensor(),
                         options);
      next.node = static_cast<int64_t>(sentence.result.tree.size());
      const bool at_end = token == options.end;
      node.fate = at_end ? BeamNode::Fate::kFinished : BeamNode::Fate::kKept;
      if (at_end || static_cast<int64_t>(next.tokens.size()) >= sentence.max_length) {
        finish(sentence, std::move(next), at_end, options);
      } else {
        survivors.push_back(std::move(next));
        parents.push_back(parent);
      }
    } else if (!options.keep_tree) {
      break;
    }
    if (options.keep_tree) sentence.result.tree.push_back(node);
  }
  sentence.beam = std::move(survivors);
  if (!can_improve(sentence, options)) {
    sentence.beam.clear();
    parents.clear();
  }
  return parents;
}

// The best tokens of every row with their log-probabilities, enough that a sentence's best `wanted`
// are among its rows': found where the model runs, so that only they travel.
class RowBest {
 public:
  RowBest(const at::Tensor& logits, int64_t wanted, const std::vector<int64_t>& never)
      : never_(never), wanted_(wanted) {
    vocabulary_ = logits.size(1);
    count_ = std::min<int64_t>(wanted + static_cast<int64_t>(never.size()) + 1, vocabulary_);
    if (logits.is_cpu() && logits.scalar_type() == at::kFloat)
      in_one_sweep(logits.contiguous());
    else
      by_libtorch(logits);
  }

  int64_t vocabulary() const { return vocabulary_; }

  // Appends a row's candidates, as row `beam` of its sentence.
  void add(int64_t row, int64_t beam, double so_far, std::vector<Candidate>& to) const {
    const double* values = values_.const_data_ptr<double>() + row * count_;
    const int64_t* tokens = tokens_.const_data_ptr<int64_t>() + row * count_;
    const size_t before = to.size();
    double least = std::numeric_limits<double>::infinity();  // of the `wanted` best
    int64_t taken = 0;
    for (int64_t k = 0; k < count_; ++k) {
      if (forbidden(tokens[k]) || !std::isfinite(values[k])) continue;
      if (++taken <= wanted_) least = values[k];
      to.push_back({so_far + values[k], beam * vocabulary_ + tokens[k]});
    }
    // Equal ones may have been cut: which of them came first is looked up in the whole row.
    if (all_.defined() && count_ < vocabulary_ && values[count_ - 1] == least) {
      to.resize(before);
      const at::Tensor whole = all_[row].to(at::kCPU, at::kDouble).contiguous();
      for (int64_t token = 0; token < vocabulary_; ++token) {
        const double value = whole.const_data_ptr<double>()[token];
        if (value >= least && std::isfinite(value) && !forbidden(token))
          to.push_back({so_far + value, beam * vocabulary_ + token});
      }
    }
  }

 private:
  bool forbidden(int64_t token) const {
    return std::find(never_.begin(), never_.end(), token) != never_.end();
  }

  // No table of probabilities is made, and equal ones come in order.
  void in_one_sweep(const at::Tensor& logits) {
    const int64_t rows = logits.size(0);
    values_ = at::empty({rows, count_}, at::kDouble);
    tokens_ = at::empty({rows, count_}, at::kLong);
    at::parallel_for(0, rows, 1, [&](int64_t from, int64_t to) {
      std::vector<float> best(static_cast<size_t>(count_));
      for (int64_t r = from; r < to; ++r) {
        const double lse = engine::best_of_row(
            logits.const_data_ptr<float>() + r * vocabulary_, static_cast<size_t>(vocabulary_),
            best.size(), best.data(), tokens_.mutable_data_ptr<int64_t>() + r * count_);
        double* values = values_.mutable_data_ptr<double>() + r * count_;
        for (size_t k = 0; k < best.size(); ++k) values[k] = static_cast<double>(best[k]) - lse;
      }
    });
  }

  void by_libtorch(const at::Tensor& logits) {
    all_ = at::log_softmax(logits, -1, arithmetic_type(logits));
    const auto [values, tokens] = all_.topk(count_, 1);
    values_ = values.to(at::kCPU, at::kDouble).contiguous();
    tokens_ = tokens.cpu().contiguous();
  }

  at::Tensor all_, values_, tokens_;
  const std::vector<int64_t>& never_;
  int64_t wanted_, vocabulary_ = 0, count_ = 0;
};

// Whether `token` would complete `n` tokens that the hypothesis already has in this order.
bool repeats(const std::vector<int64_t>& tokens, int64_t token, size_t n) {
  if (tokens.size() < n) return false;
  const auto last = tokens.end() - static_cast<int64_t>(n - 1);
  for (auto at = tokens.begin(); at + static_cast<int64_t>(n) <= tokens.end(); ++at)
    if (at[static_cast<int64_t>(n - 1)] == token && std::equal(last, tokens.end(), at)) return true;
  return false;
}

// Rules out what would repeat: only tokens that a hypothesis has can.
at::Tensor without_repeats(const at::Tensor& logits, const std::vector<Sentence>& active,
                           const BeamOptions& options) {
  if (options.doubles && options.no_repeat == 0) return logits;
  std::vector<int64_t> rows, tokens;
  int64_t row = 0;
  for (const Sentence& sentence : active)
    for (const Live& live : sentence.beam) {
      for (const int64_t token : live.tokens)
        if ((!options.doubles && token == live.tokens.back()) ||
            (options.no_repeat > 0 &&
             repeats(live.tokens, token, static_cast<size_t>(options.no_repeat)))) {
          rows.push_back(row);
          tokens.push_back(token);
        }
      ++row;
    }
  if (rows.empty()) return logits;
  return logits.index_put({at::tensor(rows, at::kLong).to(logits.device()),
                           at::tensor(tokens, at::kLong).to(logits.device())},
                          at::full({}, -std::numeric_limits<double>::infinity(), logits.options()));
}

}  // namespace

double length_penalty(int64_t length, double alpha) {
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

std::vector<SearchResult> beam_search(StepModel& model, const std::vector<int64_t>& max_lengths,
                                      const BeamOptions& options) {
  check(options);
  const at::NoGradGuard no_grad;
  std::vector<SearchResult> results(max_lengths.size());
  std::vector<Sentence> active;
  for (size_t i = 0; i < max_lengths.size(); ++i) {
    check_positive("max_lengths", max_lengths[i]);
    Sentence sentence{.index = static_cast<int64_t>(i),
                      .max_length = max_lengths[i],
                      .beam = {Live{}},
                      .result = {}};
    if (options.keep_tree)
      sentence.result.tree.push_back({-1, options.begin, 0, BeamNode::Fate::kKept});
    active.push_back(std::move(sentence));
  }
  std::vector<int64_t> rows(active.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);

  while (!active.empty()) {
    model.select(at::tensor(rows, at::kLong));
    std::vector<int64_t> last, first_row;
    std::vector<double> so_far;
    for (const Sentence& sentence : active) {
      first_row.push_back(static_cast<int64_t>(last.size()));
      for (const Live& live : sentence.beam) {
        last.push_back(live.tokens.empty() ? options.begin : live.tokens.back());
        so_far.push_back(live.log_probability);
      }
    }
    const StepOutput output = model.step(at::tensor(last, at::kLong));
    const int64_t wanted = options.keep_tree ? 2 * options.beam : options.beam;
    const RowBest best(without_repeats(output.logits, active, options), wanted, options.never);

    rows.clear();
    std::vector<Sentence> still;
    for (size_t s = 0; s < active.size(); ++s) {
      Sentence& sentence = active[s];
      const int64_t n = static_cast<int64_t>(sentence.beam.size());
      std::vector<Candidate> candidates;
      for (int64_t k = 0; k < n; ++k)
        best.add(first_row[s] + k, k, so_far[static_cast<size_t>(first_row[s] + k)], candidates);
      std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.value != b.value ? a.value > b.value
                                  : a.place < b.place;  // ties go to the lower place
      });
      candidates.resize(std::min(candidates.size(), static_cast<size_t>(wanted)));
      const at::Tensor attention = output.attention.defined()
                                       ? output.attention.narrow(0, first_row[s], n).cpu()
                                       : at::Tensor();
      const std::vector<int64_t> parents =
          grow(sentence, candidates, best.vocabulary(), attention, options);
      if (parents.empty()) {
        auto& list = sentence.result.n_best;
        if (static_cast<int64_t>(list.size()) > options.n_best)
          list.resize(static_cast<size_t>(options.n_best));
        results[static_cast<size_t>(sentence.index)] = std::move(sentence.result);
      } else {
        for (const int64_t parent : parents) rows.push_back(first_row[s] + parent);
        still.push_back(std::move(sentence));
      }
    }
    active = std::move(still);
  }
  return results;
}

std::vector<std::vector<SearchResult>> beam_search(const std::vector<SearchPart>& parts,
                                                   const BeamOptions& options) {
  std::vector<std::vector<SearchResult>> results(parts.size());
  torch_parallel().run(parts.size(), [&](size_t p) {
    const at::NoGradGuard no_grad;  // a thread's own
    results[p] = beam_search(*parts[p].start(), parts[p].max_lengths, options);
  });
  return results;
}

}  // namespace fovea::nn
