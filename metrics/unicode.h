// The little of Unicode that translation metrics need, with Python's meanings (str.split,
// str.lower, \p{P}, \p{S}, \p{N}).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::metrics {

// Bytes that are not UTF-8 become U+FFFD, one for each.
std::u32string decode_utf8(std::string_view bytes);
std::string encode_utf8(std::u32string_view text);

bool is_space(char32_t c);
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);
bool is_number(char32_t c);

std::u32string lower(std::u32string_view text);
// Words between runs of white space.
std::vector<std::u32string> split(std::u32string_view text);
std::u32string_view strip_right(std::u32string_view text);

}  // namespace fovea::metrics
