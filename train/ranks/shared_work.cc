#include "train/ranks/shared_work.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "train/ranks/ranks.h"

namespace fovea::train {
namespace {

// Each result: its length, then its numbers.
std::string bytes_of_results(const std::vector<Numbers>& results) {
  Numbers flat;
  for (const Numbers& one : results) {
    flat.push_back(static_cast<double>(one.size()));
    flat.insert(flat.end(), one.begin(), one.end());
  }
  return {reinterpret_cast<const char*>(flat.data()), flat.size() * sizeof(double)};
}

std::vector<Numbers> results_in(const std::string& bytes) {
  Numbers flat(bytes.size() / sizeof(double));
  if (!flat.empty()) std::memcpy(flat.data(), bytes.data(), flat.size() * sizeof(double));
  std::vector<Numbers> out;
  for (auto at = flat.begin(); at != flat.end();) {
    const auto size = static_cast<std::ptrdiff_t>(*at++);
    out.emplace_back(at, at + size);
    at += size;
  }
  return out;
}

// Batches often come in the order of their lengths, so neighbours go to different ranks.
std::vector<size_t> pieces_of(size_t rank, size_t size, size_t pieces) {
  std::vector<size_t> out;
  for (size_t piece = rank; piece < pieces; piece += size) out.push_back(piece);
  return out;
}

}  // namespace

std::vector<Numbers> shared_work_together(
    Ranks* ranks, size_t pieces,
    const std::function<std::vector<Numbers>(const std::vector<size_t>& own)>& compute,
    const std::string& what) {
  if (!ranks) return compute(pieces_of(0, 1, pieces));
  const auto size = static_cast<size_t>(ranks->size());
  const auto own = compute(pieces_of(static_cast<size_t>(ranks->rank()), size, pieces));
  const std::vector<std::string> all = ranks->gather(bytes_of_results(own), what);
  std::vector<Numbers> out(pieces);
  for (size_t rank = 0; rank < size; ++rank) {
    std::vector<Numbers> theirs = results_in(all[rank]);
    const std::vector<size_t> places = pieces_of(rank, size, pieces);
    if (theirs.size() != places.size())
      throw std::runtime_error(fmt::format("{}: {} results of {}, expected {}",
                                           ranks->name_of(static_cast<int>(rank)), theirs.size(),
                                           what, places.size()));
    for (size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(theirs[i]);
  }
  return out;
}

std::vector<Numbers> shared_work(Ranks* ranks, size_t pieces,
                                 const std::function<Numbers(size_t piece)>& compute,
                                 const std::string& what) {
  return shared_work_together(
      ranks, pieces,
      [&](const std::vector<size_t>& own) {
        std::vector<Numbers> out;
        for (const size_t piece : own) out.push_back(compute(piece));
        return out;
      },
      what);
}

}  // namespace fovea::train
