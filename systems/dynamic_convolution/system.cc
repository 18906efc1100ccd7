#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "systems/dynamic_convolution/model.h"
#include "systems/system.h"
#include "systems/transformer_work.h"
#include "translate/task.h"

namespace fovea::systems::dynamic_convolution {
namespace {

constexpr int64_t kWidest = 1001;

// "3,7,15": the widths of kernels, from the lowest layer up.
std::vector<int64_t> kernels_of(const std::string& text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int64_t width = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, width);
    if (error != std::errc() || stop != text.data() + end || width < 1 || width > kWidest ||
        width % 2 == 0)
      throw UsageError(
          fmt::format("--set kernels={}: expected odd numbers from 1 to {}, separated by commas",
                      text, kWidest));
    out.push_back(width);
    at = end + 1;
  }
  return out;
}

nn::Mixing mixing_of(const std::string& kind) {
  if (kind == "light") return nn::Mixing::kLight;
  return kind == "dynamic" ? nn::Mixing::kDynamic : nn::Mixing::kQuaternion;
}

void check_sizes(const OptionValues& o) {
  const int64_t parts = o.text("kind") == "quaternion" ? 4 : 1, heads = o.integer("heads");
  if (o.integer("width") % (parts * heads) != 0)
    throw UsageError(fmt::format("--set width={}: expected a multiple of {} ({}heads={})",
                                 o.integer("width"), parts * heads, parts > 1 ? "4 × " : "",
                                 heads));
  if (o.integer("hidden") % parts != 0)
    throw UsageError(
        fmt::format("--set hidden={}: expected a multiple of 4, the parts of a "
                    "quaternion",
                    o.integer("hidden")));
}

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  check_sizes(o);
  DynamicConvolutionConfig config;
  config.stacks.mixing = mixing_of(o.text("kind"));
  config.stacks.layer = translate::layer_options(o);
  config.stacks.encoder_layers = config.stacks.decoder_layers = o.integer("layers");
  config.stacks.final_norm = o.text("norm") == "pre";
  config.stacks.kernels = kernels_of(o.text("kernels"));
  config.stacks.edges = o.text("edges") == "zeros" ? nn::Edges::kZeros : nn::Edges::kRenormalised;
  config.ends = translate::stack_config(o);
  return std::make_shared<DynamicConvolutionModel>(config, vocabularies);
}

std::vector<Option> options() {
  std::vector<Option> own =
      joined(translate::task_options({.generator = "reordered"}), translate::stack_options());
  own.push_back(Option("kind", "dynamic",
                       "what takes the place of self-attention: a learned kernel, a kernel from "
                       "each word, or attention between quaternions")
                    .among({"light", "dynamic", "quaternion"}));
  own.push_back(Option("kernels", "3,7",
                       "light, dynamic: widths of the layers' kernels in words, odd, from the "
                       "lowest layer up; the last one serves all layers above"));
  own.push_back(Option("edges", "zeros",
                       "light, dynamic: at a sentence's ends words outside are zeros (the "
                       "paper's), or weights are normalised over the words there are")
                    .among({"zeros", "renormalised"}));
  return own;
}

const Registration registered{System{
    .info =
        {.name = "dynamic-convolution",
         .number = 30,
         .title = "Light and dynamic convolution, quaternion attention",
         .idea = "Must every word compare itself with every other? A light convolution mixes the "
                 "words in a window by weights that depend on the offset alone; a dynamic one "
                 "computes these weights from the word in the middle. No keys are compared, so the "
                 "cost grows with the length and not with its square. Quaternion layers save "
                 "elsewhere: the Hamilton product uses every weight four times, so a quarter of "
                 "the weights is enough.",
         .paper = "Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions; "
                  "Tay et al. 2019, Lightweight and Efficient Neural Natural Language Processing "
                  "with Quaternion Networks",
         .equation =
             R"(o_{i,c} = \sum_{j=1}^{k} \operatorname{softmax}_j(W_h x_i)_j\; x_{i+j-\lceil (k+1)/2 \rceil,\, c}, \quad h = \lceil c H / d \rceil)",
         .code =
             "// kernels: a row of weights by offset for each word; eye reads it at the offset.\n"
             "auto mixed = fovea::attend(kernels, zeros, x,\n"
             "                           {.score = "
             "fovea::Score(fovea::Dot{1.0}).relative(eye, {}, reach),\n"
             "                            .normaliser = fovea::Unnormalised{}, .structure = "
             "fovea::Window{reach, reach}});",
         .triple = {"none (light), x_i (dynamic)", "offset j", "x_{i+j}",
                    "learned, or linear in x_i", "softmax over offsets", "window"},
         .formats = translate::formats(
             "a generated reordered language (default), dates or copy-and-reverse"),
         .expect = "measured: Multi30k en-de, test 2016: light 38.8 BLEU after 25 epochs, dynamic "
                   "39.6 after 27, quaternion 34.8 after 18"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 12,
                            .batch = 64,
                            .rate = 3e-3,
                            .beta2 = 0.98,
                            .epsilon = 1e-9,
                            .schedule = "cosine",
                            .warmup = 200,
                            .clip = 1.0},
    .tour = {"generator=german", "epochs=4", "width=64", "hidden=128", "rate=0.005", "warmup=100"},
    .step_work = transformer_work(10),
    .make = translate::task_of("dynamic-convolution", make),
}};

}  // namespace
}  // namespace fovea::systems::dynamic_convolution
