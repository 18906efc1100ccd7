#include "systems/machines/sequences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/text.h"

namespace fovea::systems::machines {
namespace {

constexpr int64_t kMostRepeats = 1000;

int64_t parsed_repeats(const std::string& word, const std::string& name, size_t number) {
  const int64_t repeats = data::parse_integer(word.substr(1), "repeats", name, number);
  if (repeats < 1 || repeats > kMostRepeats)
    throw data::FileError(name, number,
                          fmt::format("{} repeats, expected 1 to {}", repeats, kMostRepeats));
  return repeats;
}

}  // namespace

Sequence draw(data::Random& random, const Drawn& how) {
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
  };
  Sequence out;
  out.words.resize(static_cast<size_t>(between(how.shortest, how.longest)));
  for (std::string& word : out.words)
    for (int64_t i = 0; i < how.bits; ++i) word += random.below(2) ? '1' : '0';
  out.repeats = between(1, how.repeats);
  return out;
}

std::string text_of(const Sequence& sequence, Job job) {
  std::string out = fmt::format("{}", fmt::join(sequence.words, " "));
  if (job == Job::kRepeatCopy) out += fmt::format(" x{}", sequence.repeats);
  return out;
}

Sequence parsed(std::string_view line, Job job, int64_t bits, const std::string& name,
                size_t number) {
  Sequence out{.words = data::words(line)};
  if (out.words.empty())
    throw data::FileError(name, number, "a blank line, expected words of bits");
  const bool counted = out.words.back().starts_with('x');
  if (counted != (job == Job::kRepeatCopy))
    throw data::FileError(
        name, number,
        fmt::format("expected words of bits{}, found {}",
                    job == Job::kRepeatCopy ? " and how often to say them, x2, at the end" : "",
                    data::shown(line)));
  if (counted) {
    out.repeats = parsed_repeats(out.words.back(), name, number);
    out.words.pop_back();
  }
  if (out.words.empty())
    throw data::FileError(name, number, "expected at least one word of bits, found none");
  const size_t width = bits > 0 ? static_cast<size_t>(bits) : out.words.front().size();
  for (const std::string& word : out.words)
    if (word.size() != width || word.find_first_not_of("01") != std::string::npos)
      throw data::FileError(
          name, number,
          fmt::format("expected words of {} bits, found {}", width, data::shown(word)));
  const auto all = static_cast<uint64_t>(steps(out, job));
  if (all > data::limit(data::Limit::kSentence))
    throw data::FileError(name, number,
                          "with the answer, " + data::beyond(data::Limit::kSentence, all));
  return out;
}

std::vector<Sequence> read_sequences(const std::string& path, Job job, int64_t bits) {
  std::vector<Sequence> out;
  data::each_line(std::string_view(data::read_file(path)), path,
                  [&](size_t number, std::string_view line) {
                    out.push_back(parsed(line, job, bits, path, number));
                    bits = static_cast<int64_t>(out.back().words.front().size());
                  });
  return out;
}

int64_t words_learned(int64_t epoch, int64_t curriculum, int64_t longest) {
  if (epoch >= curriculum) return longest;
  return (longest * (epoch + 1) + curriculum) / (curriculum + 1);  // rounded up
}

int64_t answer_steps(const Sequence& sequence, Job job) {
  return sequence.length() * sequence.repeats + (job == Job::kRepeatCopy ? 1 : 0);
}
int64_t steps(const Sequence& sequence, Job job) {
  return sequence.length() + 1 + answer_steps(sequence, job);
}
int64_t input_width(int64_t bits, Job job) { return bits + (job == Job::kRepeatCopy ? 2 : 1); }
int64_t output_width(int64_t bits, Job job) { return bits + (job == Job::kRepeatCopy ? 1 : 0); }

Encoded encoded(const std::vector<Sequence>& sequences, Job job) {
  int64_t longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max(longest, steps(sequence, job));
  const auto bits = static_cast<int64_t>(sequences.front().words.front().size()),
             count = static_cast<int64_t>(sequences.size());
  Encoded out{.input = torch::zeros({longest, count, input_width(bits, job)}),
              .wanted = torch::zeros({longest, count, output_width(bits, job)}),
              .asked = torch::zeros({longest, count})};
  auto input = out.input.accessor<float, 3>(), wanted = out.wanted.accessor<float, 3>();
  auto asked = out.asked.accessor<float, 2>();
  for (int64_t b = 0; b < count; ++b) {
    const Sequence& sequence = sequences[static_cast<size_t>(b)];
    const int64_t length = sequence.length(), answer = answer_steps(sequence, job);
    const auto bit = [&](int64_t at, int64_t i) {
      return sequence.words[static_cast<size_t>(at)][static_cast<size_t>(i)] == '1' ? 1.0f : 0.0f;
    };
    for (int64_t i = 0; i < bits; ++i) {
      for (int64_t t = 0; t < length; ++t) input[t][b][i] = bit(t, i);
      for (int64_t t = 0; t < length * sequence.repeats; ++t)
        wanted[length + 1 + t][b][i] = bit(t % length, i);
    }
    input[length][b][bits] = 1;
    for (int64_t t = 0; t < answer; ++t) asked[length + 1 + t][b] = 1;
    if (job == Job::kRepeatCopy) {
      input[length][b][bits + 1] = static_cast<float>(sequence.repeats);
      wanted[length + answer][b][bits] = 1;
    }
  }
  return out;
}

}  // namespace fovea::systems::machines
