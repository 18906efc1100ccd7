#include "data/pictures/readable.h"

#include <fmt/format.h>

#include "data/count_of.h"
#include "data/files/file.h"

namespace fovea::data {

std::optional<std::string> Readable::note(const std::string& name) const {
  if (errors_.empty()) return {};
  if (2 * errors_.size() > good_.size())
    throw FileError(name, 0,
                    fmt::format("{} of {} pictures cannot be read; the first: {}", errors_.size(),
                                good_.size(), errors_.front()));
  return count_of(errors_.size(), "picture", " cannot be read, left out: ") + errors_.front() +
         (errors_.size() > 1 ? fmt::format(" (and {} more)", errors_.size() - 1) : "");
}

void Readable::leave_out_of(Splits& splits) const {
  if (errors_.empty()) return;
  for (const Split part : {Split::kTrain, Split::kValidation, Split::kTest})
    std::erase_if(splits.of(part), [&](int64_t item) { return !good_[static_cast<size_t>(item)]; });
}

}  // namespace fovea::data
