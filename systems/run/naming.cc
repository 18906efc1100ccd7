#include "systems/run/naming.h"

#include <c10/util/Exception.h>

#include <string>

#include "data/files/file.h"
#include "fovea/error.h"
#include "systems/run/provenance.h"
#include "systems/run/session.h"
#include "train/failure.h"
#include "train/usage_error.h"

namespace fovea::systems {

void rethrow_naming(const std::filesystem::path& run) {
  const std::string path = run.string();
  try {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const InvalidArgument& error) {
    const std::string words = error.what();
    if (words.starts_with(path)) throw;
    throw InvalidArgument(path + ": " + words);
  } catch (const c10::Error& error) {
    throw InvalidArgument(path + ": " + train::words_of(error));
  }
}

std::string read_items(const Run& run, const Source& source) {
  const auto read = [&] { return read_items(*run.task, source); };
  if (source.path.empty()) return naming(run.folder->path(), read);
  try {
    return read();
  } catch (const data::FileError& error) {
    const std::string words = error.what();
    if (source.all_test || !words.starts_with(source.path + ": no such file")) throw;
    throw InvalidArgument(
        words +
        "; the RUN was trained on it, evaluate --data and explain --input take other items");
  }
}

}  // namespace fovea::systems
