// Word alignments as Pharaoh, gold files and NAACL's shared task write them.
#include <algorithm>
#include <cmath>

#include "metrics/alignment.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_links(std::string_view bytes) {
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
    metrics::GoldLinks gold;
    accepts([&] { gold = metrics::parse_gold(line, metrics::IndexBase::kOne); });
    rate.add(read, gold);
    const auto both = metrics::symmetrise(read, before, metrics::Symmetrisation::kIntersection),
               grown =
                   metrics::symmetrise(read, before, metrics::Symmetrisation::kGrowDiagFinalAnd),
               either = metrics::symmetrise(read, before, metrics::Symmetrisation::kUnion);
    require(both.size() <= grown.size() && grown.size() <= either.size(),
            "a symmetrisation lies between intersection and union");
    before = std::move(read);
  }
  const double error = rate.error_rate();
  require(std::isnan(error) || (error >= 0 && error <= 1), "an error rate is between 0 and 1");
  accepts([&] { metrics::parse_naacl(all, all.size()); });
}
const Registration links{"links", fuzz_links};

}  // namespace
}  // namespace fovea::fuzz
