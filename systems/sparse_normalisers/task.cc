#include "systems/sparse_normalisers/task.h"

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "systems/run/session.h"
#include "systems/sparse_normalisers/model.h"
#include "systems/sparse_normalisers/view.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/descent/fit.h"

namespace fovea::systems::sparse_normalisers {
namespace {

// A temporary folder, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "fovea-normalisers-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw InvalidArgument("temporary folder: cannot be made in " +
                            std::filesystem::temp_directory_path().string());
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class SparseNormalisers : public Task {
 public:
  explicit SparseNormalisers(const RunOptions& run_options)
      : run_options_(run_options), systems_(run_options.options.list("systems")) {
    if (systems_.empty()) throw UsageError("systems: none, expected at least one");
    for (size_t i = 0; i < systems_.size(); ++i) {
      const auto& options = find(systems_[i]).options;
      if (std::ranges::none_of(options, [](const Option& o) { return o.name == "normaliser"; }))
        throw UsageError("systems: " + systems_[i] +
                         " has no option normaliser, expected one that has");
      if (std::find(systems_.begin(), systems_.begin() + static_cast<std::ptrdiff_t>(i),
                    systems_[i]) != systems_.begin() + static_cast<std::ptrdiff_t>(i))
        throw UsageError("systems: " + systems_[i] + " twice, expected each once");
    }
  }

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0,
                            "sparse-normalisers trains systems on what they generate; on your own "
                            "data: fovea train SYSTEM --data PATH --set normaliser=entmax");
    data_seed_ = source.seed;
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(static_cast<int64_t>(systems_.size()));
  }

  void fit(train::Fit& fit) override {
    const TemporaryFolder folder;
    const auto count = static_cast<int64_t>(kCompared.size());
    for (size_t s = 0; s < systems_.size(); ++s) {
      for (int64_t n = 0; n < count; ++n) {
        const auto row = static_cast<int64_t>(s);
        const std::string name = kCompared[static_cast<size_t>(n)].name;
        fit.progress().step(row * count + n, static_cast<int64_t>(systems_.size()) * count,
                            systems_[s] + " under " + name);
        const Json report = trained(systems_[s], name, folder.path() / (systems_[s] + "-" + name));
        const Json &metrics = report.at("metrics"), &attention = report.at("attention");
        const char* figure = figure_of(metrics);
        model_->figures[row][n] = metrics.at(figure).get<double>();
        if (attention.contains("zeros")) model_->zeros[row][n] = attention["zeros"].get<double>();
        if (attention.contains("hit_rate"))
          model_->hits[row][n] = attention["hit_rate"].get<double>();
        fit.record({{"system", systems_[s]},
                    {"normaliser", name},
                    {figure, metrics.at(figure)},
                    {"attention", attention}});
        fit.stop_if_interrupted("between two systems");
      }
    }
  }

  Evaluation evaluate(Split) override {
    Evaluation out;
    out.items = static_cast<int64_t>(systems_.size() * kCompared.size());
    for (size_t n = 0; n < kCompared.size(); ++n) {
      const auto column = static_cast<int64_t>(n);
      double sum = 0, known = 0;
      for (size_t s = 0; s < systems_.size(); ++s) {
        const auto row = static_cast<int64_t>(s);
        const std::string name = systems_[s] + "_" + kCompared[n].name;
        out.metrics[name] = model_->figures[row][column].item<double>();
        const double zeros = model_->zeros[row][column].item<double>(),
                     hits = model_->hits[row][column].item<double>();
        if (hits >= 0) out.attention["hit_rate_" + name] = hits;
        if (zeros < 0) continue;
        out.attention["zeros_" + name] = zeros;
        sum += zeros;
        ++known;
      }
      if (known > 0) out.metrics[std::string("zeros_") + kCompared[n].name] = sum / known;
    }
    return out;
  }

  // A line is a row of scores; the answer its weights under each of the three, tabs between.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      const torch::Tensor scores = row_of(text, input.name, line);
      for (size_t n = 0; n < kCompared.size(); ++n) {
        to << (n > 0 ? "\t" : "");
        const std::vector<float> row = to_floats(weights_of(scores, kCompared[n]));
        for (size_t i = 0; i < row.size(); ++i) to << fmt::format("{}{:.4g}", i ? " " : "", row[i]);
      }
      to << '\n';
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input == nullptr)
      return {curves(*model_, systems_), row_picture(torch::tensor({1.0, 0.5, -1.0, 0.9, -0.3}))};
    std::vector<explain::Explanation> out;
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      out.push_back(row_picture(row_of(line, input->name, number)));
    });
    return out;
  }

 private:
  static const char* figure_of(const Json& metrics) {
    for (const char* name : {"exact", "accuracy"})
      if (metrics.contains(name)) return name;
    return "rmse";  // of general, which answers with numbers
  }

  static torch::Tensor row_of(std::string_view text, const std::string& name, size_t line) {
    std::vector<double> scores;
    for (const std::string& word : data::words(text))
      scores.push_back(data::parse_number(word, "score", name, line));
    if (scores.empty()) throw data::FileError(name, line, "no scores, expected a row of numbers");
    return torch::tensor(scores, torch::kFloat64);
  }

  // Trained as in the tour, or as by `fovea train`.
  Json trained(const std::string& name, const std::string& normaliser,
               const std::filesystem::path& out) const {
    TrainRequest request{.system = name,
                         .seed = run_options_.seed,
                         .data_seed = data_seed_,
                         .threads = at::get_num_threads(),
                         .device = run_options_.device.str(),
                         .out = out};
    if (run_options_.options.text("effort") == "tour") request.set = find(name).tour;
    std::erase_if(request.set,
                  [](const std::string& set) { return set.starts_with("normaliser="); });
    request.set.push_back("normaliser=" + normaliser);
    train::Progress silent(train::Progress::Style::kSilent);
    return train(request, silent);
  }

  const RunOptions run_options_;
  const std::vector<std::string> systems_;
  uint64_t data_seed_ = 1;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_sparse_normalisers(const RunOptions& run_options) {
  return std::make_unique<SparseNormalisers>(run_options);
}

}  // namespace fovea::systems::sparse_normalisers
