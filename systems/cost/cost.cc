// Cost: self-attention O(n²d) with paths of length 1, recurrence O(nd²) with paths of length n,
// convolution O(knd²) with n/k. Nothing is learned: `train` measures all three on this machine, and
// the picture puts the measured crossing beside the predicted one.
#include "systems/cost/cost.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "data/files/file.h"
#include "fovea/attend.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/descent/fit.h"
#include "train/task.h"

namespace fovea::systems::cost {
namespace {

const std::vector<std::string> kLayers = {"self-attention", "LSTM", "convolution"};

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

struct Model : torch::nn::Module {
  explicit Model(int64_t points) {
    sizes = register_buffer("sizes", torch::zeros({points}, torch::kFloat64));
    seconds = register_buffer("seconds", torch::zeros({3, points}, torch::kFloat64));
    threads = register_buffer("threads", torch::zeros({1}, torch::kFloat64));
  }
  torch::Tensor sizes, seconds, threads;
};

// Where the first curve rises above the second, by a straight line in the logarithms; NaN where it
// does not.
double crossing(const torch::Tensor& n, const torch::Tensor& first, const torch::Tensor& second) {
  for (int64_t i = 0; i + 1 < n.size(0); ++i) {
    const auto gap = [&](int64_t at) {
      return std::log(first[at].item<double>() / second[at].item<double>());
    };
    const double here = gap(i), there = gap(i + 1);
    if (here <= 0 && there > 0) {
      const double a = std::log(n[i].item<double>()), b = std::log(n[i + 1].item<double>());
      return std::exp(a + (b - a) * -here / (there - here));
    }
  }
  return std::nan("");
}

class Cost : public Task {
 public:
  explicit Cost(const RunOptions& run_options) : run_options_(run_options) {
    for (int64_t n = run_options.options.integer("smallest");
         n <= run_options.options.integer("largest"); n *= 2)
      sizes_.push_back(n);
    if (sizes_.size() < 2) throw UsageError("--set largest: expected at least twice smallest");
  }

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0, "cost measures this machine and takes no data");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(static_cast<int64_t>(sizes_.size()));
  }

  void fit(train::Fit& fit) override {
    const torch::NoGradGuard guard;
    const int64_t d = run_options_.options.integer("d"), k = run_options_.options.integer("k");
    const auto real = torch::dtype(torch::kFloat32).device(run_options_.device);
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(d, d).batch_first(true));
    torch::nn::Conv1d convolution(torch::nn::Conv1dOptions(d, d, k).padding(k / 2));
    lstm->to(run_options_.device);
    convolution->to(run_options_.device);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const int64_t n = sizes_[i], at = static_cast<int64_t>(i);
      const torch::Tensor sequence = torch::randn({1, n, d}, real);
      const torch::Tensor heads = sequence.reshape({1, 1, n, d}),
                          channels = sequence.transpose(1, 2).contiguous();
      const double budget = run_options_.options.number("seconds");
      model_->sizes[at] = n;
      model_->seconds[0][at] = fastest_seconds([&] { attend(heads, heads, heads); }, budget);
      model_->seconds[1][at] = fastest_seconds([&] { lstm(sequence); }, budget);
      model_->seconds[2][at] = fastest_seconds([&] { convolution(channels); }, budget);
      Json line = {{"n", n}, {"d", d}};
      for (size_t layer = 0; layer < kLayers.size(); ++layer)
        line[kLayers[layer]] = {
            {"seconds", model_->seconds[static_cast<int64_t>(layer)][at].item<double>()},
            {"gflops", operations(layer, n) /
                           model_->seconds[static_cast<int64_t>(layer)][at].item<double>() / 1e9}};
      fit.record(line);
      fit.progress().step(at + 1, static_cast<int64_t>(sizes_.size()), fmt::format("n = {}", n));
      fit.stop_if_interrupted("while measuring");
    }
    model_->threads.fill_(at::get_num_threads());
  }

  Evaluation evaluate(Split) override {
    Evaluation out;
    const auto d = static_cast<double>(run_options_.options.integer("d"));
    out.items = static_cast<int64_t>(sizes_.size());
    const int64_t last = out.items - 1;
    out.metrics = {{"predicted_crossing", predicted_crossing(d)},
                   {"attention_gflops",
                    operations(0, sizes_.back()) / model_->seconds[0][last].item<double>() / 1e9},
                   {"lstm_gflops",
                    operations(1, sizes_.back()) / model_->seconds[1][last].item<double>() / 1e9},
                   {"convolution_gflops",
                    operations(2, sizes_.back()) / model_->seconds[2][last].item<double>() / 1e9},
                   {"threads", model_->threads.item<double>()},
                   {"growth_attention", growth(0)},
                   {"growth_lstm", growth(1)}};
    const double measured = crossing(model_->sizes, model_->seconds[0], model_->seconds[1]);
    if (std::isfinite(measured)) out.metrics["measured_crossing"] = measured;
    return out;
  }

  // A line is "n d" (and k): operations of attention, its projections, LSTM and convolution.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      std::istringstream words{std::string(text)};
      std::string n, d, k = "3";
      words >> n >> d >> k;
      const double rows = data::parse_number(n, "n", input.name, line),
                   width = data::parse_number(d, "d", input.name, line);
      const double kernel = k.empty() ? 3 : data::parse_number(k, "k", input.name, line);
      to << fmt::format("{:g}\t{:g}\t{:g}\t{:g}\n", attention_operations(rows, width),
                        projection_operations(rows, width), lstm_operations(rows, width),
                        convolution_operations(rows, width, kernel));
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input) throw UsageError("--input: cost draws what it measured");
    const auto d = static_cast<double>(run_options_.options.integer("d"));
    explain::Explanation out;
    out.title = fmt::format("Time of one layer, width {}", run_options_.options.integer("d"));
    out.view = explain::View::kCurve;
    out.score = "q·k / √d";
    out.normaliser = "softmax";
    out.structure = "all";
    out.scale = fmt::format("1/√{:g}", d);
    explain::Plot time;
    time.title = "Measured time and the predicted crossing";
    time.x_label = "length n";
    time.y_label = "seconds";
    time.log_x = time.log_y = true;
    explain::Plot memory = time, speed = time;
    memory.title = "Numbers held for the backward pass, if the weights were stored";
    memory.y_label = "numbers";
    speed.title = "Measured speed";
    speed.y_label = "GFLOP/s";
    for (size_t layer = 0; layer < kLayers.size(); ++layer) {
      explain::Curve seconds, rate, held;
      seconds.label = rate.label = held.label = kLayers[layer];
      for (size_t i = 0; i < sizes_.size(); ++i) {
        const auto n = static_cast<double>(sizes_[i]);
        const double measured =
            model_->seconds[static_cast<int64_t>(layer)][static_cast<int64_t>(i)].item<double>();
        for (explain::Curve* curve : {&seconds, &rate, &held}) curve->x.push_back(n);
        seconds.y.push_back(measured);
        rate.y.push_back(operations(layer, sizes_[i]) / measured / 1e9);
        held.y.push_back(layer == 0 ? n * n : layer == 1 ? 6 * n * d : n * d);
      }
      time.curves.push_back(seconds);
      speed.curves.push_back(rate);
      memory.curves.push_back(held);
    }
    const auto mark = [&](const std::string& label, double x) {
      explain::Marker marker;
      marker.label = label;
      marker.x = x;
      time.markers.push_back(marker);
    };
    mark("predicted: n = 4d", predicted_crossing(d));
    const double measured = crossing(model_->sizes, model_->seconds[0], model_->seconds[1]);
    if (std::isfinite(measured)) mark("measured", measured);
    out.plots = {time, speed, memory};
    explain::Table table;
    table.title = "By the formulas, at n = d = 1000";
    table.columns = {"layer", "operations", "steps that must wait for each other",
                     "longest path between two items"};
    const auto row = [&](const char* name, double operations, const char* waits, const char* path) {
      table.rows.push_back({name, fmt::format("{:.0f}·10⁹", operations / 1e9), waits, path});
    };
    row("self-attention", attention_operations(1000, 1000), "1", "1");
    row("self-attention with its projections",
        attention_operations(1000, 1000) + projection_operations(1000, 1000), "1", "1");
    row("LSTM", lstm_operations(1000, 1000), "n = 1000", "n = 1000");
    row("convolution, k = 3", convolution_operations(1000, 1000, 3), "1",
        "n/k ≈ 333, or log₃ n ≈ 6 dilated");
    out.tables = {table};
    out.notes = {fmt::format("Measured with {} threads, one sequence, float32. The n × n weights "
                             "are never stored by fovea::attend; the memory plot shows what "
                             "storing them would take.",
                             static_cast<int64_t>(model_->threads.item<double>())),
                 "An LSTM's steps wait for one another, so its time is far from its operation "
                 "count; attention's crossing with it lies beyond n = 4d by as much "
                 "as the LSTM's speed falls short of attention's."};
    return {out};
  }

 private:
  double operations(size_t layer, int64_t length) const {
    const auto n = static_cast<double>(length),
               d = static_cast<double>(run_options_.options.integer("d"));
    return layer == 0   ? attention_operations(n, d)
           : layer == 1 ? lstm_operations(n, d)
                        : convolution_operations(
                              n, d, static_cast<double>(run_options_.options.integer("k")));
  }
  // The exponent of n between the two largest lengths: 2 for attention, 1 for the others.
  double growth(int64_t layer) const {
    const int64_t last = static_cast<int64_t>(sizes_.size()) - 1;
    return std::log2(model_->seconds[layer][last].item<double>() /
                     model_->seconds[layer][last - 1].item<double>());
  }

  const RunOptions run_options_;
  std::vector<int64_t> sizes_;
  std::shared_ptr<Model> model_;
};

const Registration registered{{
    .info = {.name = "cost",
             .number = 34,
             .title = "What attention costs",
             .idea = "Attention compares every item with every other: 4n²d operations, and any two "
                     "items are one step apart. A recurrent layer takes 16nd² and "
                     "passes a message along n steps. Counting these operations, without "
                     "projections, attention is the cheaper while n is below 4d.\n\nOn a machine "
                     "the crossing lies elsewhere, "
                     "because the steps of a recurrence must wait for one another while attention "
                     "is two large products. This system measures both.",
             .paper = "Vaswani et al. 2017, Table 1",
             .equation = R"(4 n^2 d < 16 n d^2 \iff n < 4d)",
             .code = "auto o = fovea::attend(x, x, x);  // [1, 1, n, d]; the n × n weights are "
                     "never stored",
             .triple = {.query = "x",
                        .key = "x",
                        .value = "x",
                        .score = "scaled dot",
                        .normaliser = "softmax",
                        .structure = "all"},
             .formats = {"none: it measures this machine"},
             .expect = "by the formulas, n = d = 1000: 4·10⁹ operations for attention, 16·10⁹ for "
                       "an LSTM; crossing at n = 4d"},
    .options = {Option("d", 64, "width of an item").between(1, 4096),
                Option("k", 3, "width of the convolution's kernel, odd").between(1, 31),
                Option("smallest", 32, "length n to start from").between(1, 65536),
                Option("largest", 4096, "length n to end with, by doubling").between(2, 65536),
                Option("seconds", 0.2, "seconds for each measurement").between(0, 60)},
    .tour = {"largest=2048", "seconds=0.05"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<Cost>(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::cost
