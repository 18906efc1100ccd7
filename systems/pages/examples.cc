#include "systems/pages/examples.h"

#include <map>

#include "systems/pages/own_data.h"

namespace fovea::systems {
namespace {

const std::map<std::string, const char*> kExamples = {
    {"nadaraya-watson", "times\n10\n20"},
    {"word2vec", "teacher"},
    {"word-sum", "not really great"},
    {"fixed-attention", "the plot was not good"},
    {"gradient-masking", "0\n4"},
    {"document-attention", "food\tthe food was great but the service was awful"},
    {"hierarchical", "the teacher meets the pilot . the plot was awful ."},
    {"gat", "3 17 21"},
    {"memory-network",
     "Mary went to the kitchen.\nMary took the milk.\nMary moved to the garden.\nWhere is the "
     "milk?"},
    {"dnc", "010011 110000 x2"},
    {"ntm", "010011 110000 101010"},
    {"mixture-of-experts", "x\n0.1\n0.9"},
    {"seq2seq", "march 3, 1987"},
    {"bahdanau", "march 3, 1987"},
    {"luong", "march 3, 1987"},
    {"gnmt", "march 3, 1987"},
    {"convs2s", "march 3, 1987"},
    {"beam-search", "march 3, 1987"},
    {"scaled-dot-product", "the fox did not enter the yard because it was too late"},
    {"multi-head", "cat-o today fox-a sees"},
    {"bert", "anna is a baker .\tshe works in the [MASK] ."},
    {"structured-attention", "( * ( + 15 7 ) 1 8 )"},
    {"sparse-normalisers", "1 0.5 -1"},
    {"cost", "1000 1000 3"},
    {"next-word", "tonight anna listened slowly to the"},
};

constexpr const char* kGermanSource = "the woman has painted the brave horse";

std::string joined(const std::vector<explain::Item>& words) {
  std::string out;
  for (const explain::Item& word : words) out += (out.empty() ? "" : " ") + word.text;
  return out;
}

// The text of a picture of words, the node of a graph.
std::string shown_by(const std::vector<explain::Explanation>& pictures) {
  if (pictures.empty()) return "";
  const explain::Explanation& first = pictures.front();
  if (first.view == explain::View::kText) return joined(first.keys);
  if (first.view == explain::View::kGraph && !first.keys.empty())
    return first.keys.front().text.substr(0, first.keys.front().text.find(" · "));
  return "";
}

}  // namespace

std::string example_of(const Run& run, const std::vector<explain::Explanation>& pictures) {
  if (!own_data(run.config).empty()) return shown_by(pictures);
  // Of several generators the examples are of the one that is used unless another is chosen.
  const Json options = run.config.at("options"), defaults = run.system->option_values().json();
  if (options.contains("generator") && options.at("generator") != defaults.at("generator"))
    return options.at("generator") == "german" ? kGermanSource : "";
  const auto found = kExamples.find(run.system->info.name);
  return found == kExamples.end() ? "" : found->second;
}

}  // namespace fovea::systems
