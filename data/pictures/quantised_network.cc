#include "data/pictures/quantised_network.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

constexpr int64_t kWidestNumber = 1 << 16;

std::vector<std::string> parts_of(const std::string& text, char mark) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == mark)
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

// One line: kind, numbers, and name=value.
class OperatorLine {
 public:
  OperatorLine(std::string_view line, const std::string& path, size_t number)
      : path_(path), number_(number), words_(words(line)) {
    for (const std::string& word : words_)
      if (const size_t mark = word.find('='); mark != std::string::npos)
        fields_[word.substr(0, mark)] = word.substr(mark + 1);
  }

  bool is_blank() const { return words_.empty(); }
  const std::string& kind() const { return words_.front(); }
  [[noreturn]] void refuse(const std::string& what) const { throw FileError(path_, number_, what); }

  const std::string& text(const std::string& name) const {
    const auto found = fields_.find(name);
    if (found == fields_.end()) refuse(fmt::format("no {}=, expected one for {}", name, kind()));
    return found->second;
  }
  int64_t integer(const std::string& name, int64_t least, int64_t most) const {
    return in_range(parse_integer(text(name), name, path_, number_), name, least, most);
  }
  double scale(const std::string& name) const {
    const double out = parse_number(text(name), name, path_, number_);
    if (!(out > 0) || out > 1e6)
      refuse(fmt::format("{}={}, expected a positive number", name, out));
    return out;
  }
  std::vector<int64_t> sizes(const std::string& name, size_t count) const {
    std::vector<int64_t> out;
    for (const std::string& part : parts_of(text(name), 'x'))
      out.push_back(in_range(parse_integer(part, name, path_, number_), name, 1, kWidestNumber));
    if (out.size() != count)
      refuse(fmt::format("{}={}, expected {} sizes", name, text(name), count));
    return out;
  }
  QuantisedTensor tensor(const std::string& start) const {
    const std::vector<int64_t> size = sizes(start + "shape", 3);
    return {size[0], size[1], size[2], scale(start + "scale"), integer(start + "zp", 0, 255)};
  }
  int64_t output() const {
    if (words_.size() < 2) refuse("expected a kind and the number of its output");
    return parse_integer(words_[1], "output", path_, number_);
  }
  std::vector<int64_t> inputs() const {
    if (words_.size() < 3) refuse("expected the numbers of its inputs");
    std::vector<int64_t> out;
    for (const std::string& part : parts_of(words_[2], ','))
      out.push_back(parse_integer(part, "input", path_, number_));
    return out;
  }

 private:
  int64_t in_range(int64_t value, const std::string& name, int64_t least, int64_t most) const {
    if (value < least || value > most)
      refuse(fmt::format("{}={}, expected {} to {}", name, value, least, most));
    return value;
  }

  const std::string& path_;
  size_t number_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> fields_;
};

int64_t strided(int64_t size, int64_t stride) { return (size + stride - 1) / stride; }

class NetworkParser {
 public:
  NetworkParser(std::string_view weights, const std::string& weights_path)
      : bytes_(weights), weights_path_(weights_path) {}

  void add(const OperatorLine& line) {
    if (line.kind() == "RESHAPE" || line.kind() == "SOFTMAX") return;
    if (line.kind() == "input") {
      if (!known_.empty()) line.refuse("a second input, expected one, before all else");
      network_.input = line.output();
      known_[network_.input] = network_.in = line.tensor("");
      return;
    }
    QuantisedOperator one{
        .output = line.output(), .inputs = line.inputs(), .out = line.tensor("out_")};
    for (const int64_t input : one.inputs)
      if (!known_.contains(input))
        line.refuse(fmt::format("reads {}, expected a number that was written above", input));
    const QuantisedTensor& in = known_.at(one.inputs.front());
    if (line.kind() == "CONV" || line.kind() == "DWCONV")
      add_convolution(one, in, line);
    else if (line.kind() == "ADD")
      add_sum(one, line);
    else if (line.kind() == "AVGPOOL")
      add_pool(one, in, line);
    else
      line.refuse(fmt::format("{}, expected CONV, DWCONV, ADD, AVGPOOL, RESHAPE or SOFTMAX",
                              shown(line.kind())));
    if (!known_.emplace(one.output, one.out).second)
      line.refuse(fmt::format("writes {} again", one.output));
    network_.operators.push_back(std::move(one));
  }
  QuantisedNetwork take() { return std::move(network_); }

 private:
  void add_convolution(QuantisedOperator& one, const QuantisedTensor& in,
                       const OperatorLine& line) {
    using Kind = QuantisedOperator::Kind;
    const bool depthwise = line.kind() == "DWCONV";
    one.kind = depthwise ? Kind::kDepthwise : Kind::kConvolution;
    one.stride = line.integer("stride", 1, 16);
    if (line.text("pad") != "SAME") line.refuse("expected pad=SAME");
    one.weight_shape = line.sizes("w_shape", 4);
    const std::vector<int64_t>& w = one.weight_shape;
    const bool fits = depthwise
                          ? w[0] == 1 && w[3] == in.channels && one.out.channels == in.channels
                          : w[3] == in.channels && one.out.channels == w[0];
    if (!fits || one.out.height != strided(in.height, one.stride) ||
        one.out.width != strided(in.width, one.stride))
      line.refuse(fmt::format("weights of {} and output of {} do not fit an input of {} x {} x {}",
                              line.text("w_shape"), line.text("out_shape"), in.height, in.width,
                              in.channels));
    one.weight_scale = line.scale("w_scale");
    one.weight_zero = line.integer("w_zp", 0, 255);
    const auto channels = static_cast<size_t>(one.out.channels);
    const std::string_view weights = part("w_off", count_of(w, line), line),
                           biases = part("b_off", 4 * channels, line);
    one.weights.assign(weights.begin(), weights.end());
    one.biases.resize(channels);
    std::memcpy(one.biases.data(), biases.data(), biases.size());
  }
  void add_sum(QuantisedOperator& one, const OperatorLine& line) const {
    one.kind = QuantisedOperator::Kind::kAdd;
    if (one.inputs.size() != 2) line.refuse("expected two inputs");
    for (const int64_t input : one.inputs) {
      const QuantisedTensor& in = known_.at(input);
      if (in.height != one.out.height || in.width != one.out.width ||
          in.channels != one.out.channels)
        line.refuse("inputs of another size than the output");
    }
  }
  static void add_pool(QuantisedOperator& one, const QuantisedTensor& in,
                       const OperatorLine& line) {
    one.kind = QuantisedOperator::Kind::kMeanPool;
    if (one.out.height != 1 || one.out.width != 1 || one.out.channels != in.channels)
      line.refuse("expected a mean over all places: an output of 1 x 1 and as many channels");
  }
  // Of no more numbers than there are bytes: the product of four sizes overflows.
  size_t count_of(const std::vector<int64_t>& sizes, const OperatorLine& line) const {
    size_t count = 1;
    for (const int64_t size : sizes) {
      count *= static_cast<size_t>(size);
      if (count > bytes_.size())
        line.refuse(fmt::format("w_shape={}: more weights than the {} bytes of {}",
                                line.text("w_shape"), bytes_.size(), weights_path_));
    }
    return count;
  }
  std::string_view part(const char* name, size_t count, const OperatorLine& line) const {
    const auto offset =
        static_cast<size_t>(line.integer(name, 0, static_cast<int64_t>(bytes_.size())));
    if (count > bytes_.size() - offset)
      line.refuse(fmt::format("{}={}: {} bytes from there on, but {} has {}", name, offset, count,
                              weights_path_, bytes_.size()));
    return bytes_.substr(offset, count);
  }

  std::string_view bytes_;
  const std::string& weights_path_;
  QuantisedNetwork network_;
  std::map<int64_t, QuantisedTensor> known_;
};

}  // namespace

QuantisedNetwork parse_quantised_network(std::string_view text, const std::string& text_path,
                                         std::string_view weights,
                                         const std::string& weights_path) {
  NetworkParser parser(weights, weights_path);
  each_line(text, text_path, [&](size_t number, std::string_view line) {
    const OperatorLine one(line, text_path, number);
    if (!one.is_blank() && line.front() != '#') parser.add(one);
  });
  QuantisedNetwork out = parser.take();
  if (out.operators.empty()) throw FileError(text_path, 0, "no operators in it");
  return out;
}

QuantisedNetwork read_quantised_network(const std::string& folder) {
  std::string text, weights;
  for (const std::filesystem::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    if (name.ends_with("_quant.txt") || name.ends_with("_quant.txt.gz")) text = path.string();
    if (name.ends_with("_quant.bin") || name.ends_with("_quant.bin.gz")) weights = path.string();
  }
  if (text.empty() || weights.empty())
    throw FileError(folder, 0, "expected NAME_quant.txt and NAME_quant.bin (gzip or not) in it");
  return parse_quantised_network(read_file(text), text, read_file(weights), weights);
}

std::vector<std::string> read_class_names(const std::string& path) {
  std::vector<std::string> out;
  const std::string text = read_file(path);
  each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
    line = trimmed(line);
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos ||
        parse_integer(line.substr(0, blank), "class", path, number) !=
            static_cast<int64_t>(out.size()))
      throw FileError(path, number, fmt::format("expected {} and a name", out.size()));
    out.emplace_back(trimmed(line.substr(blank)));
  });
  return out;
}

}  // namespace fovea::data
