#include "metrics/alignment.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

[[noreturn]] void bad_link(std::string_view token, std::string_view expected) {
  throw InvalidArgument("alignment: '" + std::string(token) + "', expected " +
                        std::string(expected));
}

// A larger number is a broken file, not a sentence or a corpus.
constexpr int32_t kMostPositions = 10'000'000;

int32_t parse_position(std::string_view digits, IndexBase base, std::string_view token) {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      value < static_cast<int32_t>(base) || value > kMostPositions) {
    bad_link(token, base == IndexBase::kOne ? "source-target with positions from 1 to ten million"
                                            : "source-target with positions from 0 to ten million");
  }
  return value - static_cast<int32_t>(base);
}

// Calls visit(link, separator) for each token of the line.
template <class Visit>
void each_link(std::string_view line, std::string_view separators, IndexBase base, Visit visit) {
  std::istringstream tokens{std::string(line)};
  for (std::string token; tokens >> token;) {
    const size_t at = token.find_first_of(separators);
    if (at == std::string::npos) bad_link(token, "source-target, as 3-4");
    const std::string_view view = token;
    visit(Link{parse_position(view.substr(0, at), base, token),
               parse_position(view.substr(at + 1), base, token)},
          token[at]);
  }
}

int64_t common(const Links& a, const Links& b) {
  return std::count_if(a.begin(), a.end(), [&](const Link& link) { return b.contains(link); });
}

// Adds links of `candidates` where `accept(link)` until nothing changes.
template <class Accept>
void grow(const Links& candidates, Links& result, Accept accept) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : candidates) {
      if (!result.contains(link) && accept(link)) {
        result.insert(link);
        changed = true;
      }
    }
  }
}

Links grow_diag_final_and(const Links& forward, const Links& backward, Links result,
                          const Links& all) {
  const auto source_free = [&](int32_t s) {
    return std::none_of(result.begin(), result.end(), [s](const Link& l) { return l.source == s; });
  };
  const auto target_free = [&](int32_t t) {
    return std::none_of(result.begin(), result.end(), [t](const Link& l) { return l.target == t; });
  };
  const auto touches = [&](const Link& link) {
    for (int32_t i = -1; i <= 1; ++i) {
      for (int32_t j = -1; j <= 1; ++j) {
        if ((i != 0 || j != 0) && result.contains({link.source + i, link.target + j})) return true;
      }
    }
    return false;
  };
  grow(all, result, [&](const Link& link) {
    return touches(link) && (source_free(link.source) || target_free(link.target));
  });
  for (const Links* side : {&forward, &backward}) {
    grow(*side, result,
         [&](const Link& link) { return source_free(link.source) && target_free(link.target); });
  }
  return result;
}

}  // namespace

Links parse_pharaoh(std::string_view line, IndexBase base) {
  Links links;
  each_link(line, "-", base, [&](Link link, char) { links.insert(link); });
  return links;
}

std::string format_pharaoh(const Links& links) {
  std::string out;
  for (const Link& link : links) {
    if (!out.empty()) out += ' ';
    out += std::to_string(link.source) + '-' + std::to_string(link.target);
  }
  return out;
}

GoldLinks parse_gold(std::string_view line, IndexBase base) {
  GoldLinks gold;
  each_link(line, "-p?", base, [&](Link link, char separator) {
    if (separator == '-') gold.sure.insert(link);
    gold.possible.insert(link);
  });
  return gold;
}

void parse_naacl(const std::string& line, std::vector<GoldLinks>& gold) {
  constexpr const char* kForm = "sentence source target [S|P] [probability]";
  std::istringstream fields(line);
  std::string sentence, source, target, sureness = "S";
  if (!(fields >> sentence)) return;
  if (!(fields >> source >> target)) bad_link(line, kForm);
  fields >> sureness;
  const bool probability = sureness.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (sureness != "S" && sureness != "P" && !probability) bad_link(line, kForm);
  const auto index = static_cast<size_t>(parse_position(sentence, IndexBase::kOne, line));
  if (index >= gold.size())
    bad_link(line, "a sentence of the " + std::to_string(gold.size()) + " there are");
  const Link link{parse_position(source, IndexBase::kOne, line),
                  parse_position(target, IndexBase::kOne, line)};
  if (sureness != "P") gold[index].sure.insert(link);
  gold[index].possible.insert(link);
}

void AlignmentErrorRate::add(const Links& links, const GoldLinks& gold) {
  if (links.empty() && gold.possible.empty()) ++skipped_;
  links_ += static_cast<int64_t>(links.size());
  sure_ += static_cast<int64_t>(gold.sure.size());
  in_sure_ += common(links, gold.sure);
  in_possible_ += std::count_if(links.begin(), links.end(), [&](const Link& link) {
    return gold.possible.contains(link) || gold.sure.contains(link);
  });
}

double AlignmentErrorRate::error_rate() const {
  if (links_ + sure_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return 1 - static_cast<double>(in_sure_ + in_possible_) / static_cast<double>(links_ + sure_);
}
double AlignmentErrorRate::precision() const {
  return static_cast<double>(in_possible_) / static_cast<double>(links_);
}
double AlignmentErrorRate::recall() const {
  return static_cast<double>(in_sure_) / static_cast<double>(sure_);
}

Symmetrisation parse_symmetrisation(std::string_view name) {
  if (name == "intersection") return Symmetrisation::kIntersection;
  if (name == "union") return Symmetrisation::kUnion;
  if (name == "grow-diag-final-and") return Symmetrisation::kGrowDiagFinalAnd;
  throw InvalidArgument("symmetrise: '" + std::string(name) +
                        "', expected intersection, union or grow-diag-final-and");
}

Links symmetrise(const Links& forward, const Links& backward, Symmetrisation how) {
  Links both, all = forward;
  for (const Link& link : forward) {
    if (backward.contains(link)) both.insert(link);
  }
  all.insert(backward.begin(), backward.end());
  switch (how) {
    case Symmetrisation::kIntersection:
      return both;
    case Symmetrisation::kUnion:
      return all;
    case Symmetrisation::kGrowDiagFinalAnd:
      break;
  }
  return grow_diag_final_and(forward, backward, both, all);
}

}  // namespace fovea::metrics
