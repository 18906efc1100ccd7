#include "data/graphs/labelled_graphs.h"

#include <fmt/format.h>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

std::vector<std::string_view> columns_at(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    out.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return out;
    at = end + 1;
  }
}

int64_t node_of(std::string_view text, size_t nodes, const std::string& path, size_t line) {
  const int64_t node = parse_integer(text, "node", path, line);
  if (node < 0 || node >= static_cast<int64_t>(nodes))
    throw FileError(path, line, fmt::format("node {}, expected 0 to {}", node, nodes - 1));
  return node;
}

LabelledEdge edge_of(const std::string& text, size_t nodes, const std::string& path, size_t line) {
  const std::vector<std::string_view> parts = columns_at(text, ':');
  if (parts.size() != 3 || parts[1].empty())
    throw FileError(path, line, fmt::format("edge {}, expected from:label:to", shown(text)));
  return {node_of(parts[0], nodes, path, line), node_of(parts[2], nodes, path, line),
          std::string(parts[1])};
}

}  // namespace

LabelledGraph parse_labelled_graph(std::string_view line, const std::string& path, size_t number) {
  std::vector<std::string_view> columns = columns_at(line, '\t');
  LabelledGraph out;
  if (columns.size() == 4) {
    const std::vector<std::string> answer = words(columns[0]);
    if (answer.size() != 1)
      throw FileError(path, number,
                      fmt::format("answer: {}, expected one word", shown(columns[0])));
    out.answer = answer[0];
    columns.erase(columns.begin());
  }
  if (columns.size() != 3)
    throw FileError(path, number,
                    fmt::format("{} columns, expected answer, node and question, kinds, edges, "
                                "with tabs between them (the answer may be absent)",
                                columns.size()));
  out.kinds = words(columns[1]);
  if (out.kinds.empty()) throw FileError(path, number, "no kinds of nodes, expected at least one");
  const std::vector<std::string> asked = words(columns[0]);
  if (asked.size() != 2)
    throw FileError(path, number,
                    fmt::format("{}, expected a node and a question", shown(columns[0])));
  out.asked = node_of(asked[0], out.kinds.size(), path, number);
  out.question = asked[1];
  for (const std::string& edge : words(columns[2]))
    out.edges.push_back(edge_of(edge, out.kinds.size(), path, number));
  return out;
}

std::vector<LabelledGraph> read_labelled_graphs(const std::string& path) {
  std::vector<LabelledGraph> out;
  each_line(read_file(path), path, [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    out.push_back(parse_labelled_graph(line, path, number));
    if (out.back().answer.empty())
      throw FileError(path, number, "no answer, expected one in the first of four columns");
  });
  if (out.empty()) throw FileError(path, 0, "no graph in it");
  return out;
}

std::string labelled_graph_text(const LabelledGraph& graph) {
  std::string out = graph.answer + (graph.answer.empty() ? "" : "\t");
  out += fmt::format("{} {}\t", graph.asked, graph.question);
  for (size_t i = 0; i < graph.kinds.size(); ++i) out += (i > 0 ? " " : "") + graph.kinds[i];
  out += '\t';
  for (size_t i = 0; i < graph.edges.size(); ++i)
    out += fmt::format("{}{}:{}:{}", i > 0 ? " " : "", graph.edges[i].from, graph.edges[i].label,
                       graph.edges[i].to);
  return out;
}

}  // namespace fovea::data
