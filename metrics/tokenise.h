// sacreBLEU's tokenisers: 13a (mteval-v13a), intl (mteval-v14, Unicode aware) and none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::metrics {

enum class Tokeniser { k13a, kIntl, kNone };

// Throws InvalidArgument for a name it does not know.
Tokeniser parse_tokeniser(std::string_view name);
std::string_view name_of(Tokeniser);

std::vector<std::string> tokenise(std::u32string_view line, Tokeniser);

}  // namespace fovea::metrics
