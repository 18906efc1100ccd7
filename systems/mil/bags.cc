#include "systems/mil/bags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/pictures/image.h"
#include "data/random.h"

namespace fovea::systems::mil {
namespace {

// Bags of digits as in the paper: sizes N(mean, deviation²), positive if at least one digit is the
// target. Half are positive by construction, because nearly all large random bags would be
// positive.
void add_digit_bags(BagSet& set, const data::Digits& digits, int64_t count, uint64_t seed,
                    const OptionValues& options) {
  const int64_t target = options.integer("target"), width = digits.height * digits.width;
  const double mean = options.number("mean_size"), deviation = options.number("size_deviation");
  std::vector<int64_t> wanted, others, all(static_cast<size_t>(digits.count));
  std::iota(all.begin(), all.end(), 0);
  for (const int64_t i : all)
    (digits.labels[static_cast<size_t>(i)] == target ? wanted : others).push_back(i);
  if (wanted.empty() || others.empty())
    throw InvalidArgument(
        fmt::format("target: {}, expected a digit that some but not all pictures show", target));
  data::Random random(seed);
  for (int64_t bag = 0; bag < count; ++bag) {
    const bool positive = bag % 2;
    const auto size = std::max<int64_t>(1, std::lround(mean + deviation * random.normal()));
    std::vector<int64_t> members;
    for (int64_t i = 0; i < size; ++i) members.push_back(random.choice(positive ? all : others));
    const auto is_key = [&](int64_t i) { return digits.labels[static_cast<size_t>(i)] == target; };
    if (positive && std::none_of(members.begin(), members.end(), is_key))
      members[random.below(members.size())] = random.choice(wanted);
    set.bags.names.push_back(std::to_string(set.bags.names.size()));
    set.bags.labels.push_back(positive);
    auto& features = set.bags.features.emplace_back(static_cast<size_t>(size * width));
    auto& keys = set.key_instances.emplace_back();
    for (size_t i = 0; i < members.size(); ++i) {
      data::normalised_digit(digits, members[i], features.data() + static_cast<int64_t>(i) * width);
      keys.push_back(is_key(members[i]));
    }
  }
}

data::DigitSets digits_from(const std::string& folder, uint64_t seed) {
  return data::digits_of(folder, 6000, 3000, seed);
}

BagSet digit_bags(const Source& source, const OptionValues& options) {
  const data::DigitSets digits = digits_from(source.path, source.seed);
  if (digits.train.height != digits.train.width)
    throw data::FileError(source.path, 0, "expected square pictures");
  BagSet out;
  out.side = digits.train.height;
  out.bags.width = out.side * out.side;
  const auto add = [&](std::vector<int64_t>& split, const data::Digits& from, int64_t count,
                       uint64_t purpose) {
    const auto first = static_cast<int64_t>(out.bags.size());
    add_digit_bags(out, from, count, data::mix(source.seed, purpose), options);
    split.resize(static_cast<size_t>(count));
    std::iota(split.begin(), split.end(), first);
  };
  if (!source.all_test) {
    add(out.splits.train, digits.train, options.integer("bags"), 11);
    add(out.splits.validation, digits.train, options.integer("validation_bags"), 12);
  }
  add(out.splits.test, digits.test, options.integer("test_bags"), 13);
  return out;
}

std::vector<float> as_numbers(const std::vector<data::Image>& images, int64_t side) {
  std::vector<float> out;
  out.reserve(images.size() * static_cast<size_t>(side * side));
  for (const data::Image& image : images)
    for (const uint8_t pixel : image.pixels) out.push_back(data::normalised_pixel(pixel));
  return out;
}

void split_bags(BagSet& set, const Source& source, const OptionValues& options) {
  data::check_binary(set.bags, source.path);
  if (!source.all_test) data::check_both_labels(set.bags, source.path);
  data::SplitRequest request = split_request(source);
  request.validation = options.number("validation");
  request.test = 0.2;
  request.keys = data::keys_of(set.bags);
  request.classes = set.bags.labels;
  set.splits = data::split(static_cast<int64_t>(set.bags.size()), request);
}

}  // namespace

Written write_digits(const BagSet& set, uint64_t seed) {
  Written out{.files = data::mnist_files(digits_from("", seed)),
              .truth = "truth.jsonl, the instances that make a bag positive"};
  std::string& truth = out.files["truth.jsonl"];
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    for (const int64_t bag : set.splits.of(split)) {
      const auto at = static_cast<size_t>(bag);
      Json keys = Json::array();
      for (size_t i = 0; i < set.key_instances[at].size(); ++i)
        if (set.key_instances[at][i]) keys.push_back(i);
      truth += Json{{"split", data::name_of(split)},
                    {"bag", set.bags.names[at]},
                    {"instances", set.key_instances[at].size()},
                    {"key_instances", keys}}
                   .dump() +
               "\n";
    }
  }
  return out;
}

std::vector<float> picture_bag(const std::string& folder, int64_t side) {
  return as_numbers(data::read_image_bag(folder, side), side);
}

BagSet read_bag_set(const Source& source, const OptionValues& options) {
  std::error_code ignored;
  if (source.path.empty() || data::is_mnist(source.path)) return digit_bags(source, options);
  BagSet out;
  if (std::filesystem::is_directory(source.path, ignored)) {
    out.side = options.integer("side");
    data::ImageBags pictures = data::read_image_bags(source.path, out.side);
    out.bags.width = out.side * out.side;
    out.bags.names = std::move(pictures.names);
    out.bags.labels = std::move(pictures.labels);
    for (const auto& images : pictures.images)
      out.bags.features.push_back(as_numbers(images, out.side));
  } else {
    out.bags = data::read_bags(source.path);
  }
  split_bags(out, source, options);
  return out;
}

}  // namespace fovea::systems::mil
