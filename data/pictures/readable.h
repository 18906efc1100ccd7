// Items whose pictures can be read, of a collection in which some cannot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/split.h"
#include "fovea/error.h"

namespace fovea::data {

class Readable {
 public:
  // The next item's picture, by a call that throws InvalidArgument where it cannot be read.
  template <class Read>
  void next(Read&& read) {
    try {
      read();
      good_.push_back(true);
    } catch (const InvalidArgument& error) {
      good_.push_back(false);
      errors_.emplace_back(error.what());
    }
  }
  // What to say of the others, if there are any. More than half of all: FileError, with the name of
  // the collection.
  std::optional<std::string> note(const std::string& name) const;
  // Takes the others out of the splits.
  void leave_out_of(Splits& splits) const;

 private:
  std::vector<bool> good_;
  std::vector<std::string> errors_;
};

}  // namespace fovea::data
