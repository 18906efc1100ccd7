#include "data/formats/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "data/files/file.h"
#include "data/formats/bags.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

// The numbers meta.txt must have, and the most of each: nodes are numbered in 32 bits.
constexpr std::pair<const char*, int64_t> kSizes[] = {
    {"nodes", INT32_MAX}, {"features", kMostFeatures}, {"classes", kMostFeatures}};

constexpr size_t kMostWords = INT32_MAX;

int64_t index_below(std::string_view text, std::string_view what, int64_t limit,
                    const std::string& path, size_t line) {
  const int64_t value = parse_integer(text, what, path, line);
  if (value < 0 || value >= limit)
    throw FileError(path, line, fmt::format("{} {}, expected 0 to {}", what, value, limit - 1));
  return value;
}

// The text of one of the folder's files. Its last line must have a line end too: a number that was
// cut off is still a number, and nothing else would show the damage.
std::string read_lines(const std::string& path) {
  std::string text = read_file(path);
  if (!text.ends_with('\n'))
    throw FileError(path, 0, "cut short: expected a line feed after the last line");
  return text;
}

// meta.txt may say how many lines a file has.
void check_count(std::map<std::string, int64_t>& meta, const char* name, size_t found,
                 const std::string& path) {
  if (meta.contains(name) && meta[name] != static_cast<int64_t>(found))
    throw FileError(path, 0,
                    fmt::format("{} lines, expected {} (meta.txt: {})", found, meta[name], name));
}

std::map<std::string, int64_t> read_meta(const std::string& path) {
  std::map<std::string, int64_t> out;
  const std::string text = read_lines(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    std::string spaced(content);
    std::replace_if(
        spaced.begin(), spaced.end(), [](char c) { return c == ':' || c == '='; }, ' ');
    const auto parts = words(spaced);
    if (parts.empty()) return;
    if (parts.size() < 2)
      throw FileError(path, line,
                      fmt::format("expected a name and a number, found {}", shown(content)));
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      out[parts[i]] = parse_integer(parts[i + 1], parts[i], path, line);
  });
  for (const auto& [name, most] : kSizes) {
    if (!out.contains(name) || out[name] < 1)
      throw FileError(path, 0, fmt::format("expected a line '{} N'", name));
    if (out[name] > most)
      throw FileError(path, 0, fmt::format("{} {}, expected 1 to {}", name, out[name], most));
  }
  return out;
}

std::vector<int64_t> read_nodes(const std::string& path, int64_t nodes) {
  std::vector<int64_t> out;
  const std::string text = read_lines(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    for (const std::string& word : words(content))
      out.push_back(index_below(word, "node", nodes, path, line));
  });
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw FileError(path, 0, "a node is listed twice");
  return out;
}

void read_features(CitationGraph& graph, const std::string& path) {
  const std::string text = read_lines(path);
  // The number of nodes in meta.txt is only a claim: memory is allocated for the nodes that have a
  // line.
  const auto lines =
      std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; });
  struct Words {  // of a node: places in `found`
    size_t first = 0, end = 0;
    bool seen = false;
  };
  std::vector<Words> of_node(static_cast<size_t>(std::min<int64_t>(graph.nodes, lines)));
  std::vector<int32_t> found;
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    if (content.empty()) return;
    const size_t colon = content.find(':');
    if (colon == std::string_view::npos)
      throw FileError(path, line,
                      fmt::format("expected 'node: index index …', found {}", shown(content)));
    const int64_t node = index_below(content.substr(0, colon), "node", graph.nodes, path, line);
    const auto place = static_cast<size_t>(node);
    if (place < of_node.size() && of_node[place].seen)
      throw FileError(path, line, fmt::format("node {} is given twice", node));
    std::vector<int32_t> own;
    for (const std::string& word : words(content.substr(colon + 1)))
      own.push_back(static_cast<int32_t>(index_below(word, "feature", graph.features, path, line)));
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    if (place >= of_node.size()) return;  // then some other node has no line
    if (own.size() > kMostWords - found.size())
      throw FileError(path, line, fmt::format("more than {} words of all nodes", kMostWords));
    of_node[place] = {found.size(), found.size() + own.size(), true};
    found.insert(found.end(), own.begin(), own.end());
  });
  const auto missing =
      std::find_if(of_node.begin(), of_node.end(), [](const Words& words) { return !words.seen; });
  if (missing != of_node.end() || static_cast<int64_t>(of_node.size()) < graph.nodes)
    throw FileError(path, 0,
                    fmt::format("no line of node {}, expected one for each of {} nodes",
                                missing - of_node.begin(), graph.nodes));
  graph.words.columns.reserve(found.size());
  graph.words.row_offsets.reserve(of_node.size() + 1);
  graph.words.row_offsets.push_back(0);
  for (const Words& words : of_node) {
    const auto begin = found.begin();
    graph.words.columns.insert(graph.words.columns.end(),
                               begin + static_cast<std::ptrdiff_t>(words.first),
                               begin + static_cast<std::ptrdiff_t>(words.end));
    graph.words.row_offsets.push_back(static_cast<int32_t>(graph.words.columns.size()));
  }
}

void read_labels(CitationGraph& graph, const std::string& path) {
  const std::string text = read_lines(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const int64_t label = parse_integer(content, "class", path, line);
    if (label < -1 || label >= graph.classes)
      throw FileError(path, line,
                      fmt::format("class {}, expected -1 to {}", label, graph.classes - 1));
    graph.labels.push_back(label);
  });
  if (static_cast<int64_t>(graph.labels.size()) != graph.nodes)
    throw FileError(
        path, 0,
        fmt::format("{} lines, expected {}, one for each node", graph.labels.size(), graph.nodes));
}

}  // namespace

std::vector<std::pair<int32_t, int32_t>> read_edges(const std::string& path, int64_t nodes) {
  std::vector<std::pair<int32_t, int32_t>> out;
  const std::string text = read_lines(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    std::string spaced(content);
    std::replace(spaced.begin(), spaced.end(), ',', ' ');
    const auto parts = words(spaced);
    if (parts.empty()) return;
    if (parts.size() != 2)
      throw FileError(path, line, fmt::format("expected two nodes, found {}", shown(content)));
    out.emplace_back(index_below(parts[0], "node", nodes, path, line),
                     index_below(parts[1], "node", nodes, path, line));
  });
  return out;
}

CitationGraph read_planetoid(const std::string& folder) {
  const auto file = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw FileError(
        folder, 0,
        "expected a folder with meta.txt, edges.txt, features.txt, labels.txt and split_*.txt");
  CitationGraph graph;
  auto meta = read_meta(file("meta.txt"));
  graph.nodes = meta["nodes"];
  graph.features = meta["features"];
  graph.classes = meta["classes"];
  graph.edges = read_edges(file("edges.txt"), graph.nodes);
  check_count(meta, "edges", graph.edges.size(), file("edges.txt"));
  read_features(graph, file("features.txt"));
  read_labels(graph, file("labels.txt"));
  graph.splits = {read_nodes(file("split_train.txt"), graph.nodes),
                  read_nodes(file("split_val.txt"), graph.nodes),
                  read_nodes(file("split_test.txt"), graph.nodes)};
  check_count(meta, "train", graph.splits.train.size(), file("split_train.txt"));
  check_count(meta, "val", graph.splits.validation.size(), file("split_val.txt"));
  check_count(meta, "test", graph.splits.test.size(), file("split_test.txt"));
  std::set<int64_t> seen;
  for (const auto* part : {&graph.splits.train, &graph.splits.validation, &graph.splits.test})
    for (const int64_t node : *part)
      if (!seen.insert(node).second)
        throw FileError(folder, 0, fmt::format("node {} is in two splits", node));
  return graph;
}

std::map<std::string, std::string> planetoid_files(const CitationGraph& graph) {
  std::map<std::string, std::string> files;
  // The required entries come last, so that a file that was cut off lacks one of them.
  files["meta.txt"] = fmt::format(
      "train {}\nval {}\ntest {}\nedges {}\nnodes {}\nfeatures {}\nclasses {}\n",
      graph.splits.train.size(), graph.splits.validation.size(), graph.splits.test.size(),
      graph.edges.size(), graph.nodes, graph.features, graph.classes);
  for (const auto& [u, v] : graph.edges) files["edges.txt"] += fmt::format("{} {}\n", u, v);
  for (size_t node = 0; node + 1 < graph.words.row_offsets.size(); ++node)
    files["features.txt"] +=
        fmt::format("{}: {}\n", node, fmt::join(row_of(graph.words, node), " "));
  files["labels.txt"] = fmt::format("{}\n", fmt::join(graph.labels, "\n"));
  for (const auto& [name, split] :
       {std::pair("split_train.txt", Split::kTrain), std::pair("split_val.txt", Split::kValidation),
        std::pair("split_test.txt", Split::kTest)})
    files[name] = fmt::format("{}\n", fmt::join(graph.splits.of(split), "\n"));
  return files;
}

namespace {

void check_ends(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  for (const auto& [u, v] : edges)
    if (u < 0 || v < 0 || u >= nodes || v >= nodes)
      throw InvalidArgument(fmt::format("edge {}-{}: expected nodes 0 to {}", u, v, nodes - 1));
}

Csr compress(int64_t nodes, std::vector<std::pair<int32_t, int32_t>> seen) {
  for (int64_t i = 0; i < nodes; ++i) seen.emplace_back(i, i);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  Csr out;
  out.row_offsets.assign(static_cast<size_t>(nodes) + 1, 0);
  out.columns.reserve(seen.size());
  for (const auto& [u, v] : seen) {
    ++out.row_offsets[static_cast<size_t>(u) + 1];
    out.columns.push_back(v);
  }
  for (size_t i = 1; i < out.row_offsets.size(); ++i) out.row_offsets[i] += out.row_offsets[i - 1];
  return out;
}

}  // namespace

Csr symmetric_with_loops(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  check_ends(nodes, edges);
  std::vector<std::pair<int32_t, int32_t>> both;
  both.reserve(2 * edges.size() + static_cast<size_t>(nodes));
  for (const auto& [u, v] : edges) {
    both.emplace_back(u, v);
    both.emplace_back(v, u);
  }
  return compress(nodes, std::move(both));
}

Csr directed_with_loops(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  check_ends(nodes, edges);
  return compress(nodes, edges);
}

}  // namespace fovea::data
