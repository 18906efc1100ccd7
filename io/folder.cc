#include "io/folder.h"

#include <system_error>

#include "fovea/error.h"

namespace fovea::io {

namespace fs = std::filesystem;

bool make_folder(const fs::path& path) {
  std::error_code error, ignored;
  const bool made = fs::create_directories(path, error);
  if (!error) return made;
  // The system says of a link whose target is gone that it exists.
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path())
    if (fs::is_symlink(at, ignored) && !fs::exists(at, ignored))
      throw InvalidArgument(path.string() + ": cannot be created: " + at.string() +
                            " is a link to " + fs::read_symlink(at, ignored).string() +
                            ", which does not exist");
  throw InvalidArgument(path.string() + ": cannot be created: " + error.message());
}

}  // namespace fovea::io
