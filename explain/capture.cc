#include "explain/capture.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "engine/call/facts.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

thread_local Capture* looking = nullptr;

template <class Choice>
std::string name_of(const Choice& choice) {
  std::string name = std::visit([](const auto& kind) { return std::string(kind.kName); }, choice);
  for (char& c : name)
    if (c == '_') c = ' ';
  return name;
}

std::string score_name(const Score& score) {
  std::string name = name_of(score.kind);
  for (const Modifier& modifier : score.modifiers) name += " + " + name_of(modifier);
  return name;
}

std::string structure_name(const Structure& structure) {
  std::string name;
  for (const auto& kind : structure.all_of) {
    std::string one = name_of(kind);
    if (const auto* any = std::get_if<AnyOf>(&kind)) {
      one.clear();
      for (const Structure& part : any->parts)
        one += (one.empty() ? "(" : " or ") + structure_name(part);
      one += ")";
    }
    if (const auto* complement = std::get_if<Not>(&kind))
      one = "not (" + structure_name(complement->parts[0]) + ")";
    name += (name.empty() ? "" : " and ") + one;
  }
  return name.empty() ? "dense" : name;
}

std::string normaliser_name(const Normaliser& normaliser) {
  if (const auto* entmax = std::get_if<Entmax>(&normaliser))
    return entmax->alpha_tensor.defined() ? "entmax, learned α"
                                          : fmt::format("{:g}-entmax", entmax->alpha);
  if (const auto* top = std::get_if<TopK>(&normaliser))
    return fmt::format("top-{} softmax", top->k);
  return name_of(normaliser);
}

// What scores are multiplied by; `width` is the key's.
std::string scale_name(const Score& score, const Options& options, int64_t width) {
  if (const auto* dot = std::get_if<Dot>(&score.kind)) {
    const auto scale = dot->scale ? dot->scale : options.scale;
    return scale ? fmt::format("{:.4g}", *scale)
                 : fmt::format("1/√{} = {:.4g}", width, engine::dot_scale(*dot, width));
  }
  if (const auto* bilinear = std::get_if<Bilinear>(&score.kind)) {
    const auto scale = bilinear->scale ? bilinear->scale : options.scale;
    return scale ? fmt::format("{:.4g}", *scale) : "1";
  }
  if (const auto* kernel = std::get_if<Kernel>(&score.kind); kernel && kernel->bandwidth.defined())
    return kernel->bandwidth.numel() == 1
               ? fmt::format("h = {:.4g}", kernel->bandwidth.item<double>())
               : "h, one for each query or head";
  return "1";
}

at::Tensor positions(const std::vector<int64_t>& wanted, const at::Tensor& like) {
  if (wanted.empty()) return {};
  return at::tensor(wanted, at::kInt).to(like.device());
}

std::vector<float> floats(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kCPU, at::kFloat).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

// weights and indices [rows, k] of one head.
std::vector<Link> links_of(const at::Tensor& weights, const at::Tensor& indices) {
  const std::vector<float> values = floats(weights);
  const at::Tensor keys = indices.to(at::kCPU, at::kInt).contiguous();
  std::vector<Link> links;
  for (int64_t i = 0; i < keys.numel(); ++i)
    if (const int32_t key = keys.data_ptr<int32_t>()[i]; key >= 0)
      links.push_back({static_cast<int32_t>(i / weights.size(1)), key, values[i]});
  return links;
}

}  // namespace

Capture::Capture(CaptureRequest request) : request_(std::move(request)), outer_(looking) {
  looking = this;
}
Capture::~Capture() { looking = outer_; }

void capture(const char* name, const at::Tensor& query, const at::Tensor& key,
             const Choices& choices, const Options& options) {
  if (looking == nullptr) return;
  const CaptureRequest& wanted = looking->request_;
  const SelectedWeights found = weights(query, key, choices,
                                        {.rows = positions(wanted.rows, query),
                                         .heads = positions(wanted.heads, query),
                                         .top_k = wanted.top_k},
                                        options);
  if (wanted.item < 0 || wanted.item >= found.weights.size(0))
    throw InvalidArgument(
        fmt::format("capture: item {}, expected 0 to {}", wanted.item, found.weights.size(0) - 1));
  const at::Tensor item = found.weights[wanted.item];  // [heads, rows, keys or top_k]
  Captured call{.name = name, .queries = item.size(1), .keys = key.size(-2), .maps = {}};
  if (wanted.top_k == 0) call.keys = item.size(2);
  for (int64_t head = 0; head < item.size(0); ++head) {
    Map map{.head = static_cast<int>(head)};
    if (wanted.top_k > 0)
      map.links = links_of(item[head], found.indices[wanted.item][head]);
    else
      map.dense = floats(item[head]);
    call.maps.push_back(std::move(map));
  }
  Explanation labels;
  label(labels, choices, options, key.size(-1));
  call.score = labels.score, call.normaliser = labels.normaliser;
  call.structure = labels.structure, call.scale = labels.scale;
  looking->calls_.push_back(std::move(call));
}

void Capture::fill(Explanation& e) const {
  if (calls_.empty())
    throw InvalidArgument("capture: the model attended to nothing while it was watched");
  e.maps.clear();
  e.layers.names.clear();
  size_t heads = 0;
  const auto queries = static_cast<int64_t>(e.queries.size()),
             keys = static_cast<int64_t>(e.keys.size());
  for (const Captured& call : calls_) {
    if (call.queries < queries || (call.keys < keys && request_.top_k == 0))
      throw InvalidArgument(fmt::format("capture: {} has {} rows of {} keys, expected {} of {}",
                                        call.name, call.queries, call.keys, queries, keys));
    for (const Map& seen : call.maps) {
      Map map{.layer = static_cast<int>(e.layers.names.size()), .head = seen.head};
      for (const Link& link : seen.links)
        if (link.query < queries && link.key < keys) map.links.push_back(link);
      for (int64_t q = 0; q < queries && !seen.dense.empty(); ++q)
        map.dense.insert(map.dense.end(), seen.dense.begin() + q * call.keys,
                         seen.dense.begin() + q * call.keys + keys);
      e.maps.push_back(std::move(map));
    }
    e.layers.names.push_back(call.name);
    heads = std::max(heads, call.maps.size());
  }
  if (e.heads.names.size() != heads) {
    e.heads.names.clear();
    for (size_t head = 0; head < heads; ++head)
      e.heads.names.push_back(
          std::to_string(request_.heads.empty() ? head + 1 : request_.heads[head] + 1));
  }
  const Captured& first = calls_.front();
  e.score = first.score, e.normaliser = first.normaliser, e.structure = first.structure,
  e.scale = first.scale;
}

void label(Explanation& e, const Choices& choices, const Options& options, int64_t width) {
  e.score = score_name(choices.score);
  e.normaliser = normaliser_name(choices.normaliser);
  e.structure = structure_name(choices.structure);
  e.scale = scale_name(choices.score, options, width);
}

}  // namespace fovea::explain
