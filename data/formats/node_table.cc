// A graph of the user's own: a table of nodes and a list of edges between their ids.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/csv.h"
#include "data/formats/graph.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

using Path = std::filesystem::path;

constexpr size_t kNone = static_cast<size_t>(-1);

// The file of that name, or of that name with .gz.
std::string with_or_without_gzip(const Path& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return file.string();
  Path packed = file;
  packed += ".gz";
  return std::filesystem::exists(packed, ignored) ? packed.string() : "";
}

std::string edge_file(const Path& folder) {
  for (const char* name : {"edges.csv", "edges.txt", "edges.tsv"})
    if (const std::string found = with_or_without_gzip(folder / name); !found.empty()) return found;
  return "";
}

size_t column_or_none(const Table& table, const std::string& name) {
  const auto found = std::find(table.header.begin(), table.header.end(), name);
  return found == table.header.end() ? kNone : static_cast<size_t>(found - table.header.begin());
}

void read_labels(CitationGraph& graph, const Table& table, size_t column) {
  graph.labels.assign(table.rows.size(), -1);
  if (column == kNone) return;
  std::vector<std::string> given;
  for (const auto& row : table.rows)
    if (!row[column].empty()) given.push_back(row[column]);
  graph.class_names = classes_of(given).names;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto found =
        std::find(graph.class_names.begin(), graph.class_names.end(), table.rows[i][column]);
    if (found != graph.class_names.end()) graph.labels[i] = found - graph.class_names.begin();
  }
  graph.classes = static_cast<int64_t>(graph.class_names.size());
}

void read_splits(CitationGraph& graph, const Table& table, size_t column) {
  if (column == kNone) return;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& name = table.rows[i][column];
    if (name.empty()) continue;
    if (graph.labels[i] < 0)
      throw FileError(table.path, table.lines[i],
                      fmt::format("split {} of a node without a label", shown(name)));
    try {
      graph.splits.of(split_from_name(name)).push_back(static_cast<int64_t>(i));
    } catch (const FileError&) {
      throw;
    } catch (const InvalidArgument& error) {
      throw FileError(table.path, table.lines[i], error.what());
    }
  }
}

void read_values(CitationGraph& graph, const Table& table, const std::set<size_t>& taken) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < table.header.size(); ++c)
    if (!taken.contains(c)) columns.push_back(c);
  // A class under another name would be a feature.
  const auto text =
      std::find_if(columns.begin(), columns.end(), [&](size_t c) { return !table.numeric(c); });
  if (std::find(table.header.begin(), table.header.end(), "label") == table.header.end() &&
      text != columns.end())
    throw FileError(
        table.path, 1,
        fmt::format("column '{}' is not a number, and no column is called label: expected "
                    "id, label (the class of a node) and numbers, found {}",
                    table.header[*text], fmt::join(table.header, ", ")));
  std::erase_if(columns, [&](size_t c) {
    const bool words = !table.numeric(c) && !table.mistyped(c);
    if (words) graph.left_out.push_back(table.header[c]);
    return words;
  });
  graph.features = static_cast<int64_t>(columns.size());
  if (columns.empty())
    throw FileError(table.path, 1,
                    "expected at least one column of numbers besides id, label and split");
  for (const size_t c : columns) graph.feature_names.push_back(table.header[c]);
  graph.values.reserve(table.rows.size() * columns.size());
  for (size_t row = 0; row < table.rows.size(); ++row)
    for (const size_t c : columns)
      graph.values.push_back(parse_float(table.rows[row][c], "column '" + table.header[c] + "'",
                                         table.path, table.lines[row]));
}

// The text between quotes, as in RFC 4180: two quotes stand for one.
std::string quoted_id(std::string_view& rest, const std::string& path, size_t line) {
  std::string id;
  for (;;) {
    rest.remove_prefix(1);
    const size_t end = rest.find('"');
    if (end == std::string_view::npos)
      throw FileError(path, line, "a quoted id has no closing quote, expected another '\"'");
    id += rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (!rest.starts_with('"')) return id;
    id += '"';
  }
}

bool is_mark(char separator) { return separator == ',' || separator == ';'; }

std::string next_id(std::string_view& rest, char separator, const std::string& path, size_t line) {
  std::string id;
  if (rest.starts_with('"')) {
    id = quoted_id(rest, path, line);
    const std::string_view after = is_mark(separator) ? trimmed(rest) : rest;
    const std::string ends = is_mark(separator) ? std::string(1, separator) : " \t";
    if (!after.empty() && ends.find(after[0]) == std::string::npos)
      throw FileError(
          path, line,
          fmt::format("expected the id's end after a closing quote, found {}", shown(after)));
  } else {
    const size_t end = std::min(rest.find(separator), rest.size());
    id = trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  rest = trimmed(rest);
  if (is_mark(separator) && !rest.empty()) rest = trimmed(rest.substr(1));
  return id;
}

// A comma, a semicolon or a tab outside quotes separates the ids of a line, which may then contain
// blanks. Otherwise blanks separate them.
char separator_of(std::string_view content) {
  char separator = ' ', before = ' ';
  bool quoted = false;
  for (const char c : content) {
    const bool may_open = std::string_view(" \t,;\"").find(before) != std::string_view::npos;
    if (c == '"' && (quoted || may_open)) quoted = !quoted;
    if (!quoted && c == ',') return c;
    if (!quoted && (c == '\t' || (c == ';' && separator == ' '))) separator = c;
    before = c;
  }
  return separator;
}

std::vector<std::string> ids_of(std::string_view content, const std::string& path, size_t line) {
  const char separator = separator_of(content);
  std::string_view rest = trimmed(content);
  std::vector<std::string> ids;
  while (!rest.empty()) ids.push_back(next_id(rest, separator, path, line));
  return ids;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Whether these are names of columns. Two unknown numbers are an edge with a mistake in it.
bool is_header(const std::vector<std::string>& ends,
               const std::map<std::string, int32_t, std::less<>>& numbers) {
  return std::none_of(ends.begin(), ends.end(), [&](const std::string& end) {
    return numbers.contains(end) || is_whole_number(end);
  });
}

void read_edges_by_id(CitationGraph& graph, const std::string& path,
                      const std::map<std::string, int32_t, std::less<>>& numbers,
                      const std::string& hint) {
  const std::string text = read_file(path);
  bool first = true;
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const auto ends = ids_of(content, path, line);
    if (ends.empty()) return;
    const bool may_be_header = std::exchange(first, false);
    if (ends.size() >= 2 && may_be_header && is_header(ends, numbers)) {
      graph.edge_columns.assign(ends.begin() + 2, ends.end());
      return;
    }
    const size_t fields = 2 + graph.edge_columns.size();
    if (ends.size() != fields)
      throw FileError(
          path, line,
          fields > 2
              ? fmt::format("expected {} fields as in the header, found {}", fields, shown(content))
              : fmt::format("expected two nodes, found {}{}", shown(content),
                            ends.size() > 2 ? "; a header names what else the columns are, "
                                              "which is not read"
                                            : ""));
    const auto number = [&](const std::string& id) {
      const auto found = numbers.find(id);
      if (found == numbers.end())
        throw FileError(path, line, fmt::format("node {} is not in nodes.csv{}", shown(id), hint));
      return found->second;
    };
    const int32_t from = number(ends[0]), to = number(ends[1]);  // the first mistake is reported
    graph.edges.emplace_back(from, to);
  });
}

}  // namespace

CitationGraph read_node_table(const std::string& folder) {
  const std::string nodes = with_or_without_gzip(Path(folder) / "nodes.csv"),
                    edges = edge_file(folder);
  if (nodes.empty() || edges.empty())
    throw FileError(folder, 0, "expected nodes.csv and edges.csv (or edges.txt)");
  const Table table = read_csv(nodes);
  CitationGraph graph;
  graph.nodes = static_cast<int64_t>(table.rows.size());
  if (graph.nodes == 0) throw FileError(nodes, 0, "no nodes, expected at least one");
  const size_t id = column_or_none(table, "id"), label = column_or_none(table, "label"),
               split = column_or_none(table, "split");
  std::map<std::string, int32_t, std::less<>> numbers;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    graph.names.push_back(id == kNone ? std::to_string(i) : table.rows[i][id]);
    if (!numbers.emplace(graph.names.back(), static_cast<int32_t>(i)).second)
      throw FileError(nodes, table.lines[i],
                      fmt::format("node {} is given twice", shown(graph.names.back())));
  }
  read_labels(graph, table, label);
  read_splits(graph, table, split);
  read_values(graph, table, {id, label, split});
  read_edges_by_id(graph, edges, numbers,
                   id == kNone ? ", where nodes are numbered from 0: no column is called id" : "");
  return graph;
}

CitationGraph read_graph(const std::string& folder) {
  std::error_code ignored;
  const Path path(folder);
  if (path.filename().string().starts_with("ind."))
    throw FileError(folder, 0,
                    "the ind.* files are Python pickles, which are not read here; give the folder "
                    "with meta.txt, edges.txt, features.txt");
  if (!std::filesystem::is_directory(path, ignored))
    throw FileError(
        folder, 0,
        fmt::format("{}expected a folder: Planetoid's text files (meta.txt, …), or nodes.csv with "
                    "edges.csv",
                    std::filesystem::exists(path, ignored) ? "" : "does not exist, "));
  if (std::filesystem::exists(path / "meta.txt", ignored)) return read_planetoid(folder);
  if (!with_or_without_gzip(path / "nodes.csv").empty()) return read_node_table(folder);
  for (const Path& entry : entries_of(path))
    if (entry.filename().string().starts_with("ind."))
      return read_graph(entry.string());  // says why not
  throw FileError(folder, 0,
                  "expected Planetoid's text files (meta.txt, …), or nodes.csv with edges.csv");
}

}  // namespace fovea::data
