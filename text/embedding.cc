#include "text/embedding.h"

#include <fmt/format.h>

#include <filesystem>

#include "data/files/file.h"
#include "data/formats/vocabulary.h"
#include "data/packed.h"
#include "fovea/error.h"
#include "text/model.h"
#include "train/run/run_folder.h"
#include "train/run/tensor_file.h"

namespace fovea::text {

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options) : options_(options) {
  weight =
      register_parameter("weight", at::randn({options.words, options.width}) * options.deviation);
  still_ = at::tensor({data::kPad, data::kUnk}, at::kLong);
  const torch::NoGradGuard no_grad;
  weight.index_fill_(0, still_, 0);
  // A row that gets no gradient is not moved by the optimiser (weight decay aside: the task leaves
  // it off this table).
  weight.register_hook([this](const at::Tensor& gradient) {
    return gradient.index_fill(0, still_.to(gradient.device()), 0);
  });
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) {
  at::Tensor out = torch::nn::functional::embedding(ids, weight);
  if (!is_training()) return out;
  if (options_.word_dropout > 0)
    out = out * at::dropout(at::ones({ids.size(0), 1}, out.options()), options_.word_dropout, true);
  return options_.dropout > 0 ? at::dropout(out, options_.dropout, true) : out;
}

int64_t EmbeddingImpl::begin_with(const Vectors& vectors, const data::Vocabulary& vocabulary) {
  if (vectors.width != options_.width)
    throw InvalidArgument(
        fmt::format("vectors: width {}, expected {}", vectors.width, options_.width));
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> still = {data::kPad, data::kUnk};
  for (size_t i = 0; i < vectors.words.size(); ++i) {
    const int64_t id = vocabulary.id(vectors.words[i]);
    if (id <= data::kEos) continue;
    weight[id].copy_(at::from_blob(const_cast<float*>(vectors.of(i)), {vectors.width}, at::kFloat));
    still.push_back(id);
  }
  if (options_.learning == Learning::kFrozen) still_ = at::tensor(still, at::kLong);
  return static_cast<int64_t>(still.size()) - 2;
}

Vectors vectors_of_run(const std::string& folder) {
  const train::RunFolder run(folder);
  // word2vec's run keeps its words in a file of their own.
  for (const char* name : {"vectors.txt", "vectors.bin"})
    if (run.has(name)) return parse_vectors(run.read(name), (run / name).string());
  const std::string words = (run / "vocabulary").string(),
                    weights = (run / "model.safetensors").string();
  const auto vocabulary = data::Vocabulary::parse(run.read("vocabulary"), words);
  const auto tensors = train::parse_tensors(run.read("model.safetensors"), weights).tensors;
  const auto found = tensors.find("embedding.weight");
  if (found == tensors.end() || found->second.dim() != 2 ||
      found->second.size(0) != vocabulary.size())
    throw data::FileError(weights, 0,
                          fmt::format("no embedding.weight of {} rows, expected a run of a system "
                                      "that has word vectors",
                                      vocabulary.size()));
  const at::Tensor table = found->second.slice(0, data::kEos + 1).to(at::kFloat).contiguous();
  Vectors out{.width = table.size(1)};
  for (int64_t id = data::kEos + 1; id < vocabulary.size(); ++id)
    out.words.push_back(vocabulary.word(id));
  out.values.assign(table.data_ptr<float>(), table.data_ptr<float>() + table.numel());
  return out;
}

// weights() pads every bag to the longest it is given, so that one long line would cost as much for
// each short one. Bags go by length, those between two powers of two together: the padding is then
// no more than what is padded.
at::Tensor packed_weights(const at::Tensor& query, const at::Tensor& key, const Choices& choices,
                          const at::Tensor& offsets) {
  const int64_t total = key.size(0), bags = offsets.size(0) - 1;
  if (bags == 0 || total == 0) return at::zeros({query.size(1), total}, query.options());
  const int64_t queries = query.size(0) / bags;
  const at::Tensor starts = offsets.to(key.device(), at::kLong), owner = data::owners(starts),
                   lengths = starts.diff();
  const at::Tensor size = at::log2(lengths.to(at::kDouble)).ceil();  // -inf: no items
  const at::Tensor size_of_item = size.index_select(0, owner),
                   place = at::arange(total, owner.options()) - starts.index_select(0, owner);
  at::Tensor out = at::empty({queries * query.size(1), total}, query.options());
  const at::Tensor sizes = std::get<0>(at::_unique(size_of_item.cpu()));
  for (int64_t i = 0; i < sizes.size(0); ++i) {
    const double one = sizes[i].item<double>();
    const at::Tensor items = (size_of_item == one).nonzero().squeeze(1),
                     chosen = (size == one).nonzero().squeeze(1);
    const at::Tensor ends = at::constant_pad_nd(lengths.index_select(0, chosen).cumsum(0), {1, 0});
    Choices how = choices;
    how.structure =
        Ragged{at::arange(chosen.size(0) + 1, owner.options()).mul(queries).to(at::kInt),
               ends.to(at::kInt)};
    const at::Tensor asked =
        query.unflatten(0, {bags, queries}).index_select(0, chosen).flatten(0, 1);
    const at::Tensor padded = weights(asked, key.index_select(0, items), how)
                                  .weights.flatten(1, 2);  // [chosen, heads * queries, longest]
    out.index_copy_(
        1, items,
        padded.permute({0, 2, 1}).index({data::owners(ends), place.index_select(0, items)}).t());
  }
  return out;
}

}  // namespace fovea::text
