// Making folders.
#pragma once

#include <filesystem>

namespace fovea::io {

// Makes a folder, and those it is to lie in; whether there was none. InvalidArgument where it cannot:
// "NAME: cannot be created: NAME is a link to OTHER, which does not exist".
bool make_folder(const std::filesystem::path& path);

}  // namespace fovea::io
