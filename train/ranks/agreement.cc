#include "train/ranks/agreement.h"

#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "data/files/file.h"
#include "data/files/json.h"
#include "fovea/engine.h"
#include "fovea/version.h"
#include "train/ranks/product_bits.h"
#include "train/usage_error.h"

namespace fovea::train {
namespace {

std::string in_words(const Json* value) {
  return value == nullptr ? "missing" : data::visible(value->dump());
}

const Json* find(const Json& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace

Json facts_of_program() {
  return {{"version", FOVEA_VERSION},
          {"libtorch", TORCH_VERSION},
          {"SIMD target", std::string(engine::simd_target())},
          {"libtorch's CPU capability", at::get_cpu_capability()}};
}

Json facts_of_bits(torch::Device device) {
  Json facts = facts_of_program();
  if (device.is_cpu())
    facts["bits of float products (by processor, MKL and oneDNN)"] = bits_of_products();
  return facts;
}

void agree(Ranks& ranks, const Json& facts) {
  const Json flat = facts.flatten();  // "/options/rate": one name for each value
  const std::vector<std::string> all = ranks.gather(flat.dump(), "the settings of all ranks");
  const Json expected = data::parse_json(all[0], ranks.name_of(0));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const Json got = data::parse_json(all[static_cast<size_t>(rank)], ranks.name_of(rank));
    for (const Json* facts_of_one : {&expected, &got})
      for (const auto& [name, unused] : facts_of_one->items()) {
        const Json *own = find(got, name), *first = find(expected, name);
        if (own != nullptr && first != nullptr && *own == *first) continue;
        throw UsageError(fmt::format("{}: {} is {}, expected {} (rank 0's)", ranks.name_of(rank),
                                     name.substr(1), in_words(own), in_words(first)));
      }
  }
}

}  // namespace fovea::train
