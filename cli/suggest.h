// The message about an unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

// "unknown verb 'tarin': did you mean 'train'?"; if no name is near, the message lists all of them.
std::string unknown(std::string_view kind, std::string_view typed,
                    const std::vector<std::string>& names);

}  // namespace fovea::cli
