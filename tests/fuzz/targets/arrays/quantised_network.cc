// Networks of 8-bit numbers: the text and the weights.
#include "data/pictures/quantised_network.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_quantised_network(std::string_view bytes) {
  Bytes input(bytes);
  const std::string_view text = input.part(), weights = input.rest();
  data::QuantisedNetwork read;
  if (!reads("n.txt",
             [&] { read = data::parse_quantised_network(text, "n.txt", weights, "n.bin"); }))
    return;
  for (const data::QuantisedOperator& one : read.operators) {
    require(one.out.height >= 1 && one.out.width >= 1 && one.out.channels >= 1,
            "an output has a size");
    require(one.weights.empty() || one.biases.size() == static_cast<size_t>(one.out.channels),
            "a bias for each channel");
  }
}
const Registration quantised_network{"quantised_network", fuzz_quantised_network};

}  // namespace
}  // namespace fovea::fuzz
