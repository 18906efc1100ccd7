// What to say of a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

// "unknown verb 'tarin': did you mean 'train'?", or where none is near, the names there are.
std::string unknown(std::string_view kind, std::string_view typed,
                    const std::vector<std::string>& names);

}  // namespace fovea::cli
