#include "systems/machines/dataset.h"

#include <filesystem>
#include <utility>

#include "data/random.h"

namespace fovea::systems::machines {
namespace {

using Sequences = std::vector<Sequence>;

constexpr int64_t kPerLength = 50;  // generated sequences of each length beyond the trained
constexpr std::pair<const char*, Split> kFiles[] = {
    {"train.txt", Split::kTrain}, {"val.txt", Split::kValidation}, {"test.txt", Split::kTest}};

// Equal sequences go to the same split: there are few short ones, and otherwise they would be
// tested after being trained on.
Dataset split_dataset(Sequences sequences, const Source& source, Job job) {
  data::SplitRequest request = split_request(source);
  request.validation = request.test = 0.05;
  for (const Sequence& sequence : sequences)
    request.keys.push_back(data::item_key(text_of(sequence, job)));
  Dataset out;
  out.splits = data::split(static_cast<int64_t>(sequences.size()), request);
  out.splits.keys = std::move(request.keys);
  out.sequences = std::move(sequences);
  return out;
}

void add(Dataset& to, Sequences sequences, Split split, Job job) {
  for (Sequence& sequence : sequences) {
    to.splits.of(split).push_back(static_cast<int64_t>(to.sequences.size()));
    to.splits.keys.push_back(data::item_key(text_of(sequence, job)));
    to.sequences.push_back(std::move(sequence));
  }
}

}  // namespace

std::vector<Sequence> Dataset::chosen(const std::vector<int64_t>& items) const {
  Sequences out;
  for (const int64_t item : items) out.push_back(at(item));
  return out;
}

Dataset generated_dataset(const Source& source, const OptionValues& options, Job job) {
  const int64_t longest = options.integer("longest");
  Drawn how{.bits = options.integer("bits"),
            .longest = longest,
            .repeats = job == Job::kRepeatCopy ? options.integer("repeats") : 1};
  data::Random random(data::mix(source.seed, 17));
  Sequences drawn;
  for (int64_t i = 0; i < options.integer("sequences"); ++i) drawn.push_back(draw(random, how));
  Dataset out = split_dataset(std::move(drawn), source, job);
  Sequences beyond;
  for (how.shortest = longest + 1; how.shortest <= 2 * longest; ++how.shortest) {
    how.longest = how.shortest;
    for (int64_t i = 0; i < kPerLength; ++i) beyond.push_back(draw(random, how));
  }
  add(out, std::move(beyond), Split::kTest, job);
  return out;
}

Dataset read_dataset(const Source& source, Job job, int64_t bits) {
  if (!std::filesystem::is_directory(source.path))
    return split_dataset(read_sequences(source.path, job, bits), source, job);
  Dataset out;
  for (const auto& [name, split] : kFiles) {
    if (source.all_test && split != Split::kTest) continue;
    Sequences part = read_sequences(source.path + "/" + name, job, bits);
    bits = static_cast<int64_t>(part.front().words.front().size());
    add(out, std::move(part), split, job);
  }
  return out;
}

Written written(const Dataset& dataset, Job job) {
  Written out;
  for (const auto& [name, split] : kFiles)
    for (const int64_t item : dataset.splits.of(split))
      out.files[name] += text_of(dataset.at(item), job) + "\n";
  return out;
}

}  // namespace fovea::systems::machines
