// Reads the JSON that a run wrote, strictly: an entry that is missing, of another type or out of
// range is an InvalidArgument that names it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "train/types.h"

namespace fovea::train {

class Fields {
 public:
  // `place` stands before each name in messages: "config.json: facts.". The object must outlive
  // this.
  Fields(const Json& object, std::string place);

  bool has(std::string_view name) const;
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max()) const;
  uint64_t seed(std::string_view name) const;
  double number(std::string_view name) const;         // a finite one
  double number_or_nan(std::string_view name) const;  // null, which is how JSON has a NaN, is one
  std::string text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;  // finite ones
  const Json& object(std::string_view name) const;
  const Json& list(std::string_view name) const;

  [[noreturn]] void refuse(std::string_view name, const std::string& expected) const;

 private:
  const Json& entry(std::string_view name) const;

  const Json& object_;
  std::string place_;
};

// A file that belongs to the run.
const std::string& file_of(const Assets&, const std::string& name);

}  // namespace fovea::train
