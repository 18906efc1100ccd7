#include "systems/run/rank_answers.h"

#include <algorithm>
#include <sstream>

#include "data/files/lines.h"
#include "systems/run/machine.h"
#include "train/answers.h"
#include "train/failure.h"
#include "train/ranks/agreement.h"
#include "train/ranks/ranks.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

// Calls `work` with the ranks. The others of a rank that fails are told why.
template <class Work>
auto with_ranks(const train::Place& place, double timeout, const Work& work) {
  train::Ranks ranks(place, timeout);
  try {
    auto result = work(ranks);
    ranks.broadcast("", "the others to end");  // rank 0 may keep the store
    return result;
  } catch (const train::RankLost&) {
    throw;
  } catch (const std::exception& error) {
    ranks.leave(train::words_of(error));
    throw;
  }
}

// Lines that one rank answers, and the number of those before them.
struct Block {
  size_t before = 0;
  std::string text = {};
};

std::vector<std::string> lines_of(const GivenText& given) {
  std::istringstream stream(given.text);
  data::LineReader reader(stream, given.name);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

// Whole batches of `together` lines, several blocks for each rank. A line with a carriage return within
// cannot be joined with others again; then, as where lines depend on each other, one block has all.
std::vector<Block> blocks_of(const GivenText& given, size_t together, size_t ranks) {
  constexpr size_t kBlocksOfRank = 8;
  const std::vector<std::string> lines = lines_of(given);
  if (together == 0 || lines.empty() ||
      std::any_of(lines.begin(), lines.end(),
                  [](const std::string& line) { return line.find('\r') != std::string::npos; }))
    return {{0, given.text}};
  const size_t batches = (lines.size() + together - 1) / together;
  const size_t size = together * std::max<size_t>(1, batches / (ranks * kBlocksOfRank));
  std::vector<Block> out;
  for (size_t at = 0; at < lines.size(); ++at) {
    if (at % size == 0) out.push_back({.before = at});
    out.back().text += lines[at] + "\n";
  }
  return out;
}

Json answered(Run& run, const Block& block, const GivenText& given, bool json) {
  std::istringstream stream(block.text);
  std::ostringstream plain;
  JsonLines objects(plain.rdbuf());
  Json refused = Json::array(), noted = Json::array();
  Input input{.stream = stream, .name = given.name, .before = block.before};
  input.refused = [&](const std::string& error) { refused.push_back(error); };
  input.noted = [&](const std::string& note) { noted.push_back(note); };
  predict(run, input, json ? static_cast<std::ostream&>(objects) : plain);
  // Answers may be bytes that are no UTF-8, which JSON cannot hold.
  return {{"answers", Json::binary({plain.view().begin(), plain.view().end()})},
          {"refused", refused},
          {"noted", noted}};
}

std::string packed(const Json& json) {
  const std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::optional<Json> evaluate_as_rank(const EvaluateRequest& request, const train::Place& place,
                                     double timeout) {
  return with_ranks(place, timeout, [&](train::Ranks& ranks) -> std::optional<Json> {
    Json facts = train::facts_of_bits(device_of(request.device));
    facts["--split"] = request.split;
    facts["--threads"] = request.threads;
    facts["--device"] = request.device;
    facts["--data"] = request.data.empty() ? "the RUN's own" : "given";
    train::agree(ranks, facts);
    const Json report = evaluate(request.run, request.data, request.split, request.device,
                                 request.threads, request.set, &ranks);
    return ranks.first() ? std::optional(report) : std::nullopt;
  });
}

std::optional<Predicted> predict_as_rank(const PredictRequest& request, const train::Place& place,
                                         double timeout, const std::function<GivenText()>& given) {
  return with_ranks(place, timeout, [&](train::Ranks& ranks) -> std::optional<Predicted> {
    Json facts = train::facts_of_bits(device_of(request.device));
    facts["--threads"] = request.threads;
    facts["--device"] = request.device;
    facts["--json"] = request.json;
    train::agree(ranks, facts);
    Run run =
        open(request.run, request.device, request.threads, request.set, Use::kPredict, &ranks);
    GivenText all = ranks.first() ? given() : GivenText{};
    all.text = ranks.broadcast(all.text, "rank 0 to read the input");
    all.name = ranks.broadcast(all.name, "the name of the input");
    const auto size = static_cast<size_t>(ranks.size()), rank = static_cast<size_t>(ranks.rank());
    const std::vector<Block> blocks = blocks_of(all, run.task->lines_together(), size);
    Json own = Json::array();
    for (size_t i = rank; i < blocks.size(); i += size)
      own.push_back(answered(run, blocks[i], all, request.json));
    const std::vector<std::string> theirs = ranks.gather(packed(own), "the answers");
    if (!ranks.first()) return std::nullopt;
    std::vector<Json> of_rank;
    for (const std::string& bytes : theirs) of_rank.push_back(Json::from_cbor(bytes));
    Predicted out;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Json& block = of_rank[i % size].at(i / size);
      const auto& bytes = block.at("answers").get_binary();
      out.answers.append(bytes.begin(), bytes.end());
      for (const Json& one : block.at("refused")) out.refused.push_back(one.get<std::string>());
      for (const Json& one : block.at("noted")) out.noted.push_back(one.get<std::string>());
    }
    return out;
  });
}

}  // namespace fovea::systems
