#include "data/formats/bags.h"

#include <algorithm>
#include <numeric>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void check_shape(const data::Bags& bags) {
  require(bags.labels.size() == bags.size() && bags.features.size() == bags.size(),
          "every bag has a label and features");
  for (const auto& values : bags.features)
    require(bags.width > 0 ? values.size() % static_cast<size_t>(bags.width) == 0 : values.empty(),
            "instances are whole");
}

void fuzz_bags(std::string_view bytes) {
  const std::string path = folder().write("bags.csv", bytes);
  data::Bags read;
  if (reads(path, [&] { read = data::read_bags(path); })) {
    check_shape(read);
    std::vector<int64_t> all(read.size());
    std::iota(all.begin(), all.end(), 0);
    data::apply(data::scaling_of(read, all), read);
  }
  data::Bags unlabelled;
  if (!reads("bags.csv",
             [&] { unlabelled = data::parse_unlabelled_bags(std::string(bytes), "bags.csv"); }))
    return;
  check_shape(unlabelled);
  data::Features wanted{unlabelled.width, unlabelled.columns};
  std::reverse(wanted.names.begin(), wanted.names.end());
  reads("bags.csv", [&] { data::arrange(unlabelled, wanted, "bags.csv"); });
  check_shape(unlabelled);
}
const Registration bags{"bags", fuzz_bags};

}  // namespace
}  // namespace fovea::fuzz
