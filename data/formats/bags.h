// Bags of instances: CSV with columns `bag`, `label` and features, in any order, one instance in a row;
// the label is that of the bag: a number, or a word that says 1 or 0 (yes, false, positive, …).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/csv.h"

namespace fovea::data {

inline constexpr int64_t kMostFeatures = 10'000'000;  // of an item

struct Bags {
  int64_t width = 0;                       // features of an instance
  std::vector<std::string> columns = {};   // their names; empty if bags do not come from a table
  std::vector<std::string> left_out = {};  // columns of words, which are no features
  std::vector<std::string> names;          // in order of first appearance
  std::vector<int64_t> labels;             // of each bag
  std::vector<std::vector<float>>
      features;  // of each bag: instances one after another, `width` numbers each
  size_t size() const { return names.size(); }
};

// Rows of a bag need not be neighbours; a bag whose rows disagree about the label is refused. A row
// whose features are all empty names a bag without adding to it: an empty bag has one such row.
Bags read_bags(const std::string& path);
// "160 bags of 919 instances, 4 features; label 1: 85, label 0: 75"
std::string in_words(const Bags&);
// A bag is known by its name: its rows may come in any order.
std::vector<uint64_t> keys_of(const Bags&);
// The same table, as text.
std::string bags_csv(const Bags&);
// Refuses labels other than 0 and 1.
void check_binary(const Bags&, const std::string& path);
// Refuses bags that all have the same label.
void check_both_labels(const Bags&, const std::string& path);

// The same from text, for prediction: `label` may be missing and is not read.
Bags parse_unlabelled_bags(const std::string& text, const std::string& name);

// Brings the features of bags read from `path` into the order of `wanted`: by name, a name that is
// missing or not wanted is refused. Without names only the number of features is compared.
void arrange(Bags& bags, const Features& wanted, const std::string& path);
// Features from a run's folder; InvalidArgument if there are neither as many names as features nor
// none.
Features kept_features(int64_t width, std::vector<std::string> names);

// Per feature, (x - mean) / deviation with the numbers of the bags given; a constant feature
// becomes 0.
struct Scaling {
  std::vector<float> mean, deviation;
};
Scaling scaling_of(const Bags&, const std::vector<int64_t>& bags);
// A scaling from a run's folder; InvalidArgument if it does not have a mean and a deviation for each
// of `width` features.
Scaling kept_scaling(const std::vector<double>& mean, const std::vector<double>& deviation,
                     int64_t width);
void apply(const Scaling&, Bags&);
// Of each instance of a scaled bag the feature that lies farthest from its mean, by name, with the
// number as it was given: "weight 64.1".
std::vector<std::string> telling_numbers(const std::vector<float>& bag, const Features&,
                                         const Scaling&);

}  // namespace fovea::data
