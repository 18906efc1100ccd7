#include "systems/cost/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "data/files/file.h"
#include "fovea/attend.h"
#include "systems/cost/cost.h"
#include "systems/cost/memory.h"
#include "systems/cost/model.h"
#include "systems/cost/view.h"
#include "train/answers.h"
#include "train/descent/fit.h"

namespace fovea::systems::cost {
namespace {

// The fastest of as many runs as fit `budget` seconds, at least three: whatever else the machine
// does only adds to a time.
double fastest_seconds(const std::function<void()>& run, double budget) {
  using Clock = std::chrono::steady_clock;
  run();
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    const auto before = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  } while (times.size() < 3 ||
           (times.size() < 1000 &&
            std::chrono::duration<double>(Clock::now() - start).count() < budget));
  return *std::min_element(times.begin(), times.end());
}

class Cost : public Task {
 public:
  explicit Cost(const RunOptions& run_options) : run_options_(run_options) {
    for (int64_t size = run_options.options.integer("smallest");
         size <= run_options.options.integer("largest"); size *= 2)
      sizes_.push_back(size);
    if (sizes_.size() < 2) throw UsageError("--set largest: expected at least twice smallest");
  }

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0, "cost measures this machine and takes no data");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(static_cast<int64_t>(sizes_.size()),
                                            run_options_.options.text("sweep"),
                                            run_options_.options.integer("k"));
  }

  void fit(train::Fit& fit) override {
    const torch::NoGradGuard guard;
    const int64_t k = run_options_.options.integer("k");
    const auto real = torch::dtype(torch::kFloat32).device(run_options_.device);
    const bool lengths = run_options_.options.text("sweep") == "n";
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const int64_t n = lengths ? sizes_[i] : run_options_.options.integer("n"),
                    d = lengths ? run_options_.options.integer("d") : sizes_[i];
      torch::nn::LSTM lstm(torch::nn::LSTMOptions(d, d).batch_first(true));
      torch::nn::Conv1d convolution(torch::nn::Conv1dOptions(d, d, k).padding(k / 2));
      lstm->to(run_options_.device);
      convolution->to(run_options_.device);
      const torch::Tensor sequence = torch::randn({1, n, d}, real);
      const torch::Tensor heads = sequence.reshape({1, 1, n, d}),
                          channels = sequence.transpose(1, 2).contiguous();
      const double budget = run_options_.options.number("seconds");
      model_->lengths[at] = n;
      model_->widths[at] = d;
      const std::array<std::function<void()>, kLayers.size()> layers = {
          [&] { attend(heads, heads, heads); }, [&] { lstm(sequence); },
          [&] { convolution(channels); }};
      for (size_t layer = 0; layer < layers.size(); ++layer) {
        model_->seconds[static_cast<int64_t>(layer)][at] = fastest_seconds(layers[layer], budget);
        model_->bytes[static_cast<int64_t>(layer)][at] = peak_bytes(layers[layer]);
      }
      Json line = {{"n", n}, {"d", d}};
      for (size_t layer = 0; layer < kLayers.size(); ++layer)
        line[kLayers[layer]] = {
            {"seconds", model_->seconds[static_cast<int64_t>(layer)][at].item<double>()},
            {"gflops", model_->operations(layer, at) /
                           model_->seconds[static_cast<int64_t>(layer)][at].item<double>() / 1e9}};
      fit.record(line);
      fit.progress().step(at + 1, static_cast<int64_t>(sizes_.size()), fmt::format("{} = {}", model_->over, sizes_[i]));
      fit.stop_if_interrupted("while measuring");
    }
    model_->threads.fill_(at::get_num_threads());
  }

  Evaluation evaluate(Split) override {
    Evaluation out;
    out.items = static_cast<int64_t>(sizes_.size());
    const int64_t last = out.items - 1;
    out.metrics = {{"predicted_crossing", model_->predicted()},
                   {"attention_gflops", model_->operations(0, last) /
                                            model_->seconds[0][last].item<double>() / 1e9},
                   {"lstm_gflops", model_->operations(1, last) /
                                       model_->seconds[1][last].item<double>() / 1e9},
                   {"convolution_gflops", model_->operations(2, last) /
                                              model_->seconds[2][last].item<double>() / 1e9},
                   {"threads", model_->threads.item<double>()},
                   {"growth_attention", growth(0)},
                   {"growth_lstm", growth(1)}};
    const double measured = model_->crossing();
    if (std::isfinite(measured)) out.metrics["measured_crossing"] = measured;
    return out;
  }

  // A line is "n d" (and k): operations of attention, its projections, LSTM and convolution.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text) -> Answered {
      std::istringstream words{std::string(text)};
      std::string n, d, k = "3";
      words >> n >> d >> k;
      const double rows = data::parse_number(n, "n", input.name, line),
                   width = data::parse_number(d, "d", input.name, line);
      const double kernel = k.empty() ? 3 : data::parse_number(k, "k", input.name, line);
      return {fmt::format("{:g}\t{:g}\t{:g}\t{:g}\n", attention_operations(rows, width),
                          projection_operations(rows, width), lstm_operations(rows, width),
                          convolution_operations(rows, width, kernel)),
              [rows, width, kernel] {
                return Json{{"answer",
                             {{"attention", attention_operations(rows, width)},
                              {"projections", projection_operations(rows, width)},
                              {"lstm", lstm_operations(rows, width)},
                              {"convolution", convolution_operations(rows, width, kernel)}}}};
              }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input) throw UsageError("--input: cost draws what it measured");
    return {picture(*model_)};
  }

 private:
  // The exponent of what is swept between its two largest values: of n, 2 for attention and 1 for
  // the others.
  double growth(int64_t layer) const {
    const int64_t last = static_cast<int64_t>(sizes_.size()) - 1;
    return std::log2(model_->seconds[layer][last].item<double>() /
                     model_->seconds[layer][last - 1].item<double>());
  }

  const RunOptions run_options_;
  std::vector<int64_t> sizes_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_cost(const RunOptions& run_options) {
  return std::make_unique<Cost>(run_options);
}

}  // namespace fovea::systems::cost
