// How large a file, a line or a model may be before it is refused, so that an endless input cannot
// fill the memory. Each limit has a name. An environment variable sets other values:
// FOVEA_LIMITS=line=64MiB,items=50000000.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fovea::data {

enum class Limit { kFile, kLine, kItems, kSentence, kDocument, kWeights };

struct LimitInfo {
  std::string_view name;
  std::string_view unit;  // "bytes", "items", "tokens"
  std::string_view what;  // what it limits
};
const LimitInfo& info_of(Limit);
std::span<const LimitInfo> all_limits();  // in the order of Limit

uint64_t limit(Limit);
// Sets limits from `name=number,…`, numbers with K, M or G (1024 of the next smaller, "iB" may
// follow); limits not named get their defaults. InvalidArgument names what is wrong. The environment
// variable is read in this way before the first use of a limit.
void set_limits(std::string_view text);

// "more than 4 GiB, the limit `file` (FOVEA_LIMITS=file=8GiB sets another)": the message for an
// input that is too large.
std::string beyond(Limit);
std::string beyond(Limit, uint64_t found);  // "8000 tokens, more than …"
void check_count(Limit, uint64_t found);    // InvalidArgument, in these words, where there are more

// "16 MiB", "10000000": a number of a limit's unit, as set_limits reads it.
std::string in_unit(Limit, uint64_t value);

// What the process may use: the machine's memory, or less if a control group limits it.
uint64_t memory_of_machine();

}  // namespace fovea::data
