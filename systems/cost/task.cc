#include "systems/cost/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <charconv>
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
    for (const std::string& width : run_options.options.list("d"))
      widths_.push_back(width_of(width));
    if (widths_.empty()) throw UsageError("--set d: expected a width, found none");
    if (!lengths_grow()) widths_.resize(1);
  }

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0, "cost measures this machine and takes no data");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(
               static_cast<int64_t>(widths_.size()), static_cast<int64_t>(sizes_.size()),
               run_options_.options.text("sweep"), run_options_.options.integer("k"));
  }

  void fit(train::Fit& fit) override {
    const torch::NoGradGuard guard;
    const auto points = static_cast<int64_t>(sizes_.size());
    for (int64_t row = 0; row < model_->rows(); ++row)
      for (int64_t at = 0; at < points; ++at) {
        const int64_t size = sizes_[static_cast<size_t>(at)];
        const int64_t n = lengths_grow() ? size : run_options_.options.integer("n"),
                      d = lengths_grow() ? widths_[static_cast<size_t>(row)] : size;
        measure(row, at, n, d);
        fit.record(line(row, at));
        fit.progress().step(row * points + at + 1, model_->rows() * points,
                            fmt::format("n = {}, d = {}", n, d));
        fit.stop_if_interrupted("while measuring");
      }
    model_->threads.fill_(at::get_num_threads());
  }

  Evaluation evaluate(Split) override {
    Evaluation out;
    out.items = model_->rows() * static_cast<int64_t>(sizes_.size());
    const auto last = static_cast<int64_t>(sizes_.size()) - 1;
    out.metrics["threads"] = model_->threads.item<double>();
    for (int64_t row = 0; row < model_->rows(); ++row) {
      // Of several widths, each figure says which is meant.
      const std::string of =
          model_->rows() > 1 ? fmt::format("_d{}", widths_[static_cast<size_t>(row)]) : "";
      out.metrics["predicted_crossing" + of] = model_->predicted(row);
      out.metrics["attention_gflops" + of] = gflops(0, row, last);
      out.metrics["lstm_gflops" + of] = gflops(1, row, last);
      out.metrics["convolution_gflops" + of] = gflops(2, row, last);
      out.metrics["growth_attention" + of] = growth(0, row);
      out.metrics["growth_lstm" + of] = growth(1, row);
      const double measured = model_->crossing(row);
      if (std::isfinite(measured)) out.metrics["measured_crossing" + of] = measured;
    }
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
    std::vector<explain::Explanation> out;
    for (int64_t row = 0; row < model_->rows(); ++row) out.push_back(picture(*model_, row));
    return out;
  }

 private:
  static int64_t width_of(const std::string& text) {
    int64_t width = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error != std::errc() || end != text.data() + text.size() || width < 1 || width > 4096)
      throw UsageError(fmt::format(
          "--set d: expected whole numbers from 1 to 4096 with commas between, found '{}'", text));
    return width;
  }
  bool lengths_grow() const { return run_options_.options.text("sweep") == "n"; }

  void measure(int64_t row, int64_t at, int64_t n, int64_t d) {
    const int64_t k = run_options_.options.integer("k");
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(d, d).batch_first(true));
    torch::nn::Conv1d convolution(torch::nn::Conv1dOptions(d, d, k).padding(k / 2));
    lstm->to(run_options_.device);
    convolution->to(run_options_.device);
    const torch::Tensor sequence =
        torch::randn({1, n, d}, torch::dtype(torch::kFloat32).device(run_options_.device));
    const torch::Tensor heads = sequence.reshape({1, 1, n, d}),
                        channels = sequence.transpose(1, 2).contiguous();
    model_->lengths[row][at] = n;
    model_->widths[row][at] = d;
    const std::array<std::function<void()>, kLayers.size()> layers = {
        [&] { attend(heads, heads, heads); }, [&] { lstm(sequence); },
        [&] { convolution(channels); }};
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      const auto which = static_cast<int64_t>(layer);
      model_->seconds[row][which][at] =
          fastest_seconds(layers[layer], run_options_.options.number("seconds"));
      model_->bytes[row][which][at] = peak_bytes(layers[layer]);
    }
  }
  Json line(int64_t row, int64_t at) const {
    Json out = {{"n", model_->lengths[row][at].item<int64_t>()},
                {"d", model_->widths[row][at].item<int64_t>()}};
    for (size_t layer = 0; layer < kLayers.size(); ++layer)
      out[kLayers[layer]] = {{"seconds", seconds(layer, row, at)},
                             {"gflops", gflops(layer, row, at)}};
    return out;
  }
  double seconds(size_t layer, int64_t row, int64_t at) const {
    return model_->seconds[row][static_cast<int64_t>(layer)][at].item<double>();
  }
  double gflops(size_t layer, int64_t row, int64_t at) const {
    return model_->operations(layer, row, at) / seconds(layer, row, at) / 1e9;
  }
  // The exponent of what is swept between its two largest values: of n, 2 for attention and 1 for
  // the others.
  double growth(size_t layer, int64_t row) const {
    const auto last = static_cast<int64_t>(sizes_.size()) - 1;
    return std::log2(seconds(layer, row, last) / seconds(layer, row, last - 1));
  }

  const RunOptions run_options_;
  std::vector<int64_t> sizes_, widths_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_cost(const RunOptions& run_options) {
  return std::make_unique<Cost>(run_options);
}

}  // namespace fovea::systems::cost
