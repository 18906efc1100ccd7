// Word alignments as Pharaoh, gold files and NAACL's shared task write them.
#include <algorithm>
#include <cmath>

#include "metrics/alignment.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

// Between intersection and union.
void check_symmetrisations(const metrics::Links& forward, const metrics::Links& backward) {
  const auto size = [&](metrics::Symmetrisation kind) {
    return metrics::symmetrise(forward, backward, kind).size();
  };
  using enum metrics::Symmetrisation;
  const size_t grown = size(kGrowDiagFinalAnd);
  require(size(kIntersection) <= grown && grown <= size(kUnion),
          "a symmetrisation lies between intersection and union");
}

// Inputs of even length are symmetrised, others scored: each takes longer than reading them.
void fuzz_links(std::string_view bytes) {
  const bool symmetrised = bytes.size() % 2 == 0;
  std::vector<std::string> all;
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    all.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  metrics::AlignmentErrorRate rate;
  metrics::Links before;
  for (const std::string& line : all) {
    metrics::Links read;
    if (accepts([&] { read = metrics::parse_pharaoh(line); }))
      require(metrics::parse_pharaoh(metrics::format_pharaoh(read)) == read,
              "links survive being written");
    if (symmetrised) {
      check_symmetrisations(read, before);
      before = std::move(read);
    } else {
      metrics::GoldLinks gold;
      accepts([&] { gold = metrics::parse_gold(line, metrics::IndexBase::kOne); });
      rate.add(read, gold);
    }
  }
  if (symmetrised) return;
  const double error = rate.error_rate();
  require(std::isnan(error) || (error >= 0 && error <= 1), "an error rate is between 0 and 1");
  std::vector<metrics::GoldLinks> gold(all.size());
  for (const std::string& line : all) accepts([&] { metrics::parse_naacl(line, gold); });
}
const Registration links{"links", fuzz_links};

}  // namespace
}  // namespace fovea::fuzz
