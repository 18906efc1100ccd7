// A training step of the light Transformers beside the Transformer's, by length; and the convolution
// itself in three forms: the engine's pass, a call of attend, libtorch's windows.
//
//   light_step [threads=N] [width=N] [heads=N] [hidden=N] [layers=N] [tokens=N]
//
// A step is forward and the gradients of all weights of both stacks, without embedding and output. All
// contenders take turns. A batch has about `tokens` positions a side, whatever their length.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/timing.h"
#include "fovea/nn/light_transformer.h"
#include "fovea/nn/transformer.h"
#include "nn/light/convolve.h"

namespace fovea::bench {
namespace {

using Numbers = std::map<std::string_view, int64_t>;

nn::LayerOptions layer_of(const Numbers& n) {
  return {.width = n.at("width"),
          .heads = n.at("heads"),
          .hidden = n.at("hidden"),
          .dropout = 0.1,
          .attention_dropout = 0};
}

double weights_of(const torch::nn::Module& module) {
  double n = 0;
  for (const at::Tensor& p : module.parameters()) n += static_cast<double>(p.numel());
  return n;
}

std::vector<double> medians(const std::vector<std::function<void()>>& contenders) {
  std::vector<double> out;
  for (const std::vector<double>& seconds :
       take_turns(contenders, {}, {.maximum_rounds = 15, .seconds = 3}).seconds)
    out.push_back(1e3 * median(seconds));
  return out;
}

void compare_steps(const Numbers& n) {
  torch::manual_seed(1);
  const int64_t layers = n.at("layers");
  const auto light = [&](nn::Mixing mixing) {
    return nn::LightTransformer(nn::LightTransformerOptions{.mixing = mixing,
                                                            .layer = layer_of(n),
                                                            .encoder_layers = layers,
                                                            .decoder_layers = layers,
                                                            .kernels = {3, 7, 15}});
  };
  nn::Transformer transformer(nn::TransformerOptions{.layer = layer_of(n),
                                                     .encoder_layers = layers,
                                                     .decoder_layers = layers,
                                                     .final_norm = false});
  nn::LightTransformer learned = light(nn::Mixing::kLight), dynamic = light(nn::Mixing::kDynamic),
                       quaternion = light(nn::Mixing::kQuaternion);
  const auto print = [](const char* what, const std::vector<double>& numbers, int digits) {
    std::printf("%s", what);
    for (const double number : numbers) std::printf("%13.*f", digits, number);
    std::printf("\n");
    std::fflush(stdout);
  };
  std::printf("%18s%13s%13s%13s%13s\n", "", "transformer", "light", "dynamic", "quaternion");
  print("weights           ",
        {weights_of(*transformer), weights_of(*learned), weights_of(*dynamic),
         weights_of(*quaternion)},
        0);
  for (const int64_t length : {12, 25, 50, 100, 200, 400, 800}) {
    const int64_t batch = std::max<int64_t>(1, n.at("tokens") / length);
    const at::Tensor source = torch::randn({batch, length, n.at("width")}),
                     target = torch::randn({batch, length, n.at("width")});
    const auto step = [&](auto module) {
      return [module, source, target]() mutable {
        module->zero_grad();
        module->forward(source, target).sum().backward();
      };
    };
    const std::vector<double> ms =
        medians({step(transformer), step(learned), step(dynamic), step(quaternion)});
    print((std::to_string(batch) + " x " + std::to_string(length) + ", ms\t").c_str(), ms, 1);
  }
}

void compare_forms(const Numbers& n) {
  std::printf("the convolution alone, forward and backward, 200 positions, ms\n%6s%10s%10s%10s\n",
              "kernel", "engine", "attend", "windows");
  for (const int64_t kernel : {3, 7, 15, 31}) {
    nn::Convolution module(nn::ConvolutionOptions{.width = n.at("width"),
                                                  .heads = n.at("heads"),
                                                  .kernel = kernel,
                                                  .kernels = nn::Kernels::kDynamic});
    const int64_t batch = std::max<int64_t>(1, n.at("tokens") / 200);
    const at::Tensor x = torch::randn({batch, 200, n.at("width")}).set_requires_grad(true);
    const at::Tensor weight = module->kernels(x).detach().set_requires_grad(true);
    nn::OffsetAttention call = module->as_attention(x);
    call.query = call.query.detach().set_requires_grad(true);
    const auto engine = [&] { nn::convolve(x, weight, kernel / 2).sum().backward(); };
    const auto attended = [&] {
      const at::Tensor values =
          x.unflatten(-1, {n.at("heads"), x.size(-1) / n.at("heads")}).transpose(1, 2);
      attend(call.query, call.key, values, call.choices).sum().backward();
    };
    const auto windows = [&] {
      nn::weighted_windows(at::constant_pad_nd(x, {0, 0, kernel / 2, kernel / 2}), weight)
          .sum()
          .backward();
    };
    const std::vector<double> ms = medians({engine, attended, windows});
    std::printf("%6d%10.2f%10.2f%10.2f\n", static_cast<int>(kernel), ms[0], ms[1], ms[2]);
    std::fflush(stdout);
  }
}

int run(int count, char** arguments) {
  Numbers numbers = {{"threads", 1},  {"width", 128}, {"heads", 4},
                     {"hidden", 256}, {"layers", 4},  {"tokens", 2048}};
  for (int i = 1; i < count; ++i) {
    const std::string_view text = arguments[i];
    const size_t equals = text.find('=');
    const auto found = numbers.find(text.substr(0, equals));
    int64_t value = 0;
    if (found == numbers.end() || equals == std::string_view::npos ||
        std::from_chars(text.data() + equals + 1, text.data() + text.size(), value).ptr !=
            text.data() + text.size() ||
        value < 1) {
      std::fprintf(stderr,
                   "light_step: %s: expected threads=, width=, heads=, hidden=, layers= or tokens= "
                   "and a number from 1\n",
                   arguments[i]);
      return 2;
    }
    found->second = value;
  }
  at::set_num_threads(static_cast<int>(numbers["threads"]));
  compare_steps(numbers);
  compare_forms(numbers);
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int count, char** arguments) { return fovea::bench::run(count, arguments); }
