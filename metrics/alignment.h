// Word alignments: Pharaoh and NAACL files, alignment error rate (Och & Ney 2003), symmetrisation
// (Koehn et al. 2003).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::metrics {

// Positions count from 0.
struct Link {
  int32_t source, target;
  auto operator<=>(const Link&) const = default;
};
using Links = std::set<Link>;

// Sure links are possible ones too: `possible` holds both.
struct GoldLinks {
  Links sure, possible;
};

enum class IndexBase { kZero = 0, kOne = 1 };

// `0-0 1-2`; an empty line has no links.
Links parse_pharaoh(std::string_view line, IndexBase base = IndexBase::kZero);
std::string format_pharaoh(const Links& links);
// `1-1 2p3 4?5`: sure with '-', only possible with 'p' or '?'.
GoldLinks parse_gold(std::string_view line, IndexBase base);
// Adds a line `sentence source target [S|P] [probability]`, sentences and positions from 1, as in
// the shared task of NAACL 2003, to the links of its sentence. The file does not say how many
// sentences there are; a sentence beyond those of `gold` is refused.
void parse_naacl(const std::string& line, std::vector<GoldLinks>& gold);

// AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|), counts summed over the corpus.
class AlignmentErrorRate {
 public:
  void add(const Links& links, const GoldLinks& gold);
  double error_rate() const;                    // NaN when there was neither a link nor a sure one
  double precision() const;                     // |A∩P| / |A|
  double recall() const;                        // |A∩S| / |S|
  int64_t skipped() const { return skipped_; }  // sentences with no links and no gold

 private:
  int64_t links_ = 0, sure_ = 0, in_sure_ = 0, in_possible_ = 0, skipped_ = 0;
};

enum class Symmetrisation { kIntersection, kUnion, kGrowDiagFinalAnd };
Symmetrisation parse_symmetrisation(std::string_view name);
// Both sets in source-target order.
Links symmetrise(const Links& forward, const Links& backward, Symmetrisation);

}  // namespace fovea::metrics
