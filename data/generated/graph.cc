#include "data/generated/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

constexpr int64_t kWords = 14;           // of a paper
constexpr double kOfOwnField = 0.16;     // of a paper's words; a survey's are of any field
constexpr double kSurveys = 0.25;        // of the nodes
constexpr double kEdgesToSurveys = 0.5;  // of a paper's edges

// The first fifth of the words is common, a tenth is for surveys, and the rest is divided among the
// fields.
struct Dictionary {
  int64_t common, survey, field, fields;
  Dictionary(int64_t features, int64_t classes)
      : common(features / 5),
        survey(features / 10),
        field((features - features / 5 - features / 10) / classes),
        fields(classes) {}

  int64_t of_field(Random& random, int64_t which) const {
    return common + survey + which * field + draw(random, field);
  }
  int64_t of_any_field(Random& random) const { return of_field(random, draw(random, fields)); }
  int64_t of_surveys(Random& random) const { return common + draw(random, survey); }
  int64_t common_one(Random& random) const { return draw(random, common); }
  static int64_t draw(Random& random, int64_t n) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(n)));
  }
};

std::vector<int32_t> words_of(Random& random, const Dictionary& words, int64_t field, bool survey) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < kWords; ++i) {
    const double kind = random.uniform();
    int64_t word;
    if (survey)
      word = kind < 0.4   ? words.of_surveys(random)
             : kind < 0.8 ? words.of_any_field(random)
                          : words.common_one(random);
    else if (kind < kOfOwnField)
      word = words.of_field(random, field);
    else
      word = kind < 0.5 ? words.of_any_field(random) : words.common_one(random);
    out.push_back(static_cast<int32_t>(word));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// One of an ascending list within `reach` of a node; any one where there is none, or no reach.
int32_t cited(Random& random, const std::vector<int32_t>& all, int32_t node, int64_t reach) {
  if (reach > 0) {
    const auto first = std::lower_bound(all.begin(), all.end(), node - reach),
               end = std::upper_bound(first, all.end(), node + reach);
    if (first != end) return first[Dictionary::draw(random, end - first)];
  }
  return random.choice(all);
}

// Some papers of each field for training; of the rest up to 500 for validation and 1,000 for test.
Splits split_nodes(Random& random, const CitationGraph& graph, int64_t labelled) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < graph.nodes; ++i)
    if (graph.labels[static_cast<size_t>(i)] >= 0) order.push_back(i);
  random.shuffle(order);
  std::vector<int64_t> given(static_cast<size_t>(graph.classes));
  Splits out;
  const size_t choosing = std::min<size_t>(500, order.size() / 4),
               judging = std::min<size_t>(1000, order.size() / 2);
  for (const int64_t node : order) {
    int64_t& count = given[static_cast<size_t>(graph.labels[static_cast<size_t>(node)])];
    if (count < labelled) {
      ++count;
      out.train.push_back(node);
    } else if (out.validation.size() < choosing) {
      out.validation.push_back(node);
    } else if (out.test.size() < judging) {
      out.test.push_back(node);
    }
  }
  for (auto* part : {&out.train, &out.validation, &out.test}) std::sort(part->begin(), part->end());
  return out;
}

}  // namespace

GeneratedGraph generate_graph(const GraphPlan& plan) {
  const Dictionary words(plan.features, plan.classes);
  if (words.field < 1 || words.survey < 1)
    throw InvalidArgument(fmt::format("features: {}, expected at least {} for {} classes",
                                      plan.features, 2 * plan.classes + 10, plan.classes));
  Random random(mix(plan.seed, 0x6A47));
  GeneratedGraph out;
  CitationGraph& graph = out.graph;
  graph.nodes = plan.nodes;
  graph.features = plan.features;
  graph.classes = plan.classes;
  std::vector<std::vector<int32_t>> papers(static_cast<size_t>(plan.classes));
  std::vector<int32_t> surveys;
  graph.words.row_offsets.push_back(0);
  for (int64_t i = 0; i < plan.nodes; ++i) {
    const bool survey = random.uniform() < kSurveys;
    const int64_t field = Dictionary::draw(random, plan.classes);
    out.survey.push_back(survey);
    graph.labels.push_back(survey ? -1 : field);
    const std::vector<int32_t> own = words_of(random, words, field, survey);
    graph.words.columns.insert(graph.words.columns.end(), own.begin(), own.end());
    graph.words.row_offsets.push_back(static_cast<int32_t>(graph.words.columns.size()));
    (survey ? surveys : papers[static_cast<size_t>(field)]).push_back(static_cast<int32_t>(i));
  }
  const int64_t edges = plan.edges > 0 ? plan.edges : 7 * plan.nodes;
  std::vector<int32_t> all_papers;
  for (const auto& field : papers) all_papers.insert(all_papers.end(), field.begin(), field.end());
  for (int64_t i = 0; i < edges && !all_papers.empty(); ++i) {
    const int32_t from = random.choice(all_papers);
    const auto& own = papers[static_cast<size_t>(graph.labels[static_cast<size_t>(from)])];
    const bool to_survey = random.uniform() < kEdgesToSurveys && !surveys.empty();
    graph.edges.emplace_back(from, cited(random, to_survey ? surveys : own, from, plan.reach));
  }
  graph.splits = split_nodes(random, graph, plan.labelled);
  return out;
}

}  // namespace fovea::data
