#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments.h"
#include "cli/verbs/verbs.h"
#include "data/files/file.h"
#include "metrics/alignment.h"
#include "metrics/bleu.h"
#include "metrics/bootstrap.h"
#include "metrics/chrf.h"

namespace fovea::cli {
namespace {

struct ScoreOptions {
  std::string metric, hypothesis;
  std::vector<std::string> references;
  std::string tokenize = "13a", smooth = "exp";
  bool lowercase = false, json = false, one_based = true;
  size_t word_order = 0, resamples = 0;
};

struct Scored {
  std::string name;
  double score = 0;
  std::string signature, detail;
  std::optional<metrics::Interval> interval;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  data::each_line(data::read_file(path), path,
                  [&](size_t, std::string_view line) { lines.emplace_back(line); });
  return lines;
}

std::vector<std::vector<std::string>> references_of(const ScoreOptions& o) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& path : o.references) all.push_back(lines_of(path));
  return all;
}

// The bootstrap of a metric that is a function of summed counts.
template <class Counts, class Sum>
std::optional<metrics::Interval> interval_of(const std::vector<Counts>& counts, size_t resamples,
                                             const Sum& score_of_sum) {
  if (resamples == 0) return std::nullopt;
  return metrics::bootstrap(counts.size(), resamples, [&](const std::vector<uint32_t>& chosen) {
    return score_of_sum(counts, chosen);
  });
}

Scored score_bleu(const ScoreOptions& o) {
  const metrics::BleuOptions options{.tokeniser = metrics::parse_tokeniser(o.tokenize),
                                     .smoothing = metrics::parse_smoothing(o.smooth),
                                     .lowercase = o.lowercase};
  const auto hypotheses = lines_of(o.hypothesis);
  const auto references = references_of(o);
  const metrics::Bleu bleu = metrics::corpus_bleu(hypotheses, references, options);
  Scored out{
      "BLEU", bleu.score, metrics::bleu_signature(options, references.size(), o.resamples), "", {}};
  out.detail = fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      bleu.precisions[0], bleu.precisions[1], bleu.precisions[2], bleu.precisions[3],
      bleu.brevity_penalty,
      bleu.counts.reference_length > 0
          ? bleu.counts.hypothesis_length / bleu.counts.reference_length
          : 0.0,
      bleu.counts.hypothesis_length, bleu.counts.reference_length);
  std::vector<metrics::BleuCounts> counts;
  for (size_t i = 0; o.resamples > 0 && i < hypotheses.size(); ++i) {
    std::vector<std::string_view> own;
    for (const auto& reference : references) own.emplace_back(reference[i]);
    counts.push_back(metrics::bleu_counts(hypotheses[i], own, options));
  }
  out.interval = interval_of(counts, o.resamples, [&](const auto& all, const auto& chosen) {
    metrics::BleuCounts sum;
    for (const uint32_t i : chosen) sum += all[i];
    return metrics::bleu_from_counts(sum, options).score;
  });
  return out;
}

Scored score_chrf(const ScoreOptions& o) {
  const metrics::ChrfOptions options{.word_order = o.word_order, .lowercase = o.lowercase};
  const auto hypotheses = lines_of(o.hypothesis);
  const auto references = references_of(o);
  Scored out{metrics::chrf_name(options),
             metrics::corpus_chrf(hypotheses, references, options),
             metrics::chrf_signature(options, references.size(), o.resamples),
             "",
             {}};
  std::vector<metrics::ChrfCounts> counts;
  for (size_t i = 0; o.resamples > 0 && i < hypotheses.size(); ++i) {
    std::vector<std::string_view> own;
    for (const auto& reference : references) own.emplace_back(reference[i]);
    counts.push_back(metrics::chrf_counts(hypotheses[i], own, options));
  }
  out.interval = interval_of(counts, o.resamples, [&](const auto& all, const auto& chosen) {
    metrics::ChrfCounts sum(all.front().size(), 0.0);
    for (const uint32_t i : chosen) {
      for (size_t n = 0; n < sum.size(); ++n) sum[n] += all[i][n];
    }
    return metrics::chrf_from_counts(sum, options);
  });
  return out;
}

// NAACL's files separate fields by blanks, `1 1 1 S`; others have one sentence on a line, `1-1
// 2p2`.
bool is_naacl(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (!line.empty()) return line.find_first_of("-p?") == std::string::npos;
  }
  return false;
}

Scored score_aer(const ScoreOptions& o) {
  if (o.references.size() != 1)
    throw UsageError("--reference: expected one file of gold alignments");
  const auto base = o.one_based ? metrics::IndexBase::kOne : metrics::IndexBase::kZero;
  const std::vector<std::string> links = lines_of(o.hypothesis),
                                 gold_lines = lines_of(o.references[0]);
  std::vector<metrics::GoldLinks> gold;
  // The parsers do not know the name of the file.
  const auto at = [](const std::string& path, size_t line, const auto& parse) {
    try {
      return parse();
    } catch (const InvalidArgument& error) {
      throw data::FileError(path, line, error.what());
    }
  };
  if (is_naacl(gold_lines)) {
    gold.resize(links.size());
    for (size_t i = 0; i < gold_lines.size(); ++i)
      at(o.references[0], i + 1, [&] { metrics::parse_naacl(gold_lines[i], gold); });
  } else {
    for (size_t i = 0; i < gold_lines.size(); ++i)
      gold.push_back(
          at(o.references[0], i + 1, [&] { return metrics::parse_gold(gold_lines[i], base); }));
  }
  if (gold.size() != links.size()) {
    throw InvalidArgument(fmt::format("{}: {} sentences, expected {} (those of {})", o.hypothesis,
                                      links.size(), gold.size(), o.references[0]));
  }
  metrics::AlignmentErrorRate rate;
  for (size_t i = 0; i < gold.size(); ++i)
    rate.add(at(o.hypothesis, i + 1, [&] { return metrics::parse_pharaoh(links[i]); }), gold[i]);
  if (std::isnan(rate.error_rate()))
    throw InvalidArgument("aer: no links and no sure gold links, so the rate is 0/0");
  return {"AER",
          rate.error_rate(),
          fmt::format("sentences:{}|gold:{}", gold.size(), o.one_based ? "1-based" : "0-based"),
          fmt::format("precision {:.4f}, recall {:.4f}, {} empty sentences skipped",
                      rate.precision(), rate.recall(), rate.skipped()),
          {}};
}

// An option of another metric would have no effect, so it is refused.
void check_belongs(const CLI::App& app, const std::string& metric) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> owners = {
      {"--tokenize", {"bleu"}},          {"--smooth", {"bleu"}},
      {"--lowercase", {"bleu", "chrf"}}, {"--word-order", {"chrf"}},
      {"--bootstrap", {"bleu", "chrf"}}, {"--zero-based", {"aer"}}};
  for (const auto& [name, metrics] : owners) {
    if (app.get_option(name)->count() == 0) continue;
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end())
      throw UsageError(
          fmt::format("{}: an option of {}, not of {}", name, fmt::join(metrics, " and "), metric));
  }
}

int run(const ScoreOptions& o) {
  const Scored s = o.metric == "bleu"   ? score_bleu(o)
                   : o.metric == "chrf" ? score_chrf(o)
                                        : score_aer(o);
  if (o.json) {
    nlohmann::ordered_json out = {
        {"metric", o.metric}, {"score", s.score}, {"signature", s.signature}};
    if (s.interval) out["mean"] = s.interval->mean, out["half_width"] = s.interval->half_width;
    std::cout << out.dump() << '\n';
    return kDone;
  }
  const std::string value =
      o.metric == "aer" ? fmt::format("{:.4f}", s.score) : fmt::format("{:.2f}", s.score);
  std::cout << s.name << '|' << s.signature << " = " << value;
  if (s.interval)
    std::cout << fmt::format(" (μ = {:.2f} ± {:.2f})", s.interval->mean, s.interval->half_width);
  std::cout << (s.detail.empty() ? "" : "  ") << s.detail << '\n';
  return kDone;
}

}  // namespace

Verb score_verb() {
  return {"score", "BLEU, chrF or alignment error rate of a file against its reference",
          "printf 'the cat sat on the mat\\n' >gold.txt; fovea score bleu --hypothesis gold.txt "
          "--reference gold.txt",
          [](CLI::App& app) {
            auto o = std::make_shared<ScoreOptions>();
            app.add_option("metric", o->metric, "bleu, chrf or aer")
                ->required()
                ->check(CLI::IsMember({"bleu", "chrf", "aer"}));
            app.add_option("--hypothesis", o->hypothesis,
                           "output of a system, one sentence on a line (aer: Pharaoh links)")
                ->required();
            app.add_option("--reference", o->references,
                           "correct text (aer: gold links); several files are several references")
                ->required();
            app.add_option("--tokenize", o->tokenize, "bleu: tokeniser, 13a, intl or none")
                ->capture_default_str()
                ->check(CLI::IsMember({"13a", "intl", "none"}));
            app.add_option("--smooth", o->smooth, "bleu: smoothing, exp, floor, add-k or none")
                ->capture_default_str()
                ->check(CLI::IsMember({"exp", "floor", "add-k", "none"}));
            app.add_flag("--lowercase", o->lowercase, "ignore case");
            add_integer(
                app, "--word-order", [o](int64_t n) { o->word_order = static_cast<size_t>(n); }, 0,
                8, "chrf: order of word n-grams; default 0, chrF++ has 2");
            add_integer(
                app, "--bootstrap", [o](int64_t n) { o->resamples = static_cast<size_t>(n); }, 0,
                1'000'000, "number of resamples for a confidence interval; default 0, no interval");
            app.add_flag_callback(
                "--zero-based", [o] { o->one_based = false; },
                "aer: positions of the gold links count from 0");
            app.add_flag("--json", o->json, "print one JSON object");
            return [o, &app] {
              check_belongs(app, o->metric);
              return run(*o);
            };
          }};
}

}  // namespace fovea::cli
