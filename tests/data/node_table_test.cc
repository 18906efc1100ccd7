// Edge lists of the user's own, as spreadsheets and people write them.
#include <gtest/gtest.h>

#include "data/files/file.h"
#include "data/formats/graph.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

using Edges = std::vector<std::pair<int32_t, int32_t>>;

class NodeTable : public Files {
 protected:
  Edges edges(const std::string& text) const {
    write("nodes.csv",
          "id,label,x\na,0,1\nb,1,2\n\"New York, NY\",0,3\n\"the "
          "\"\"c\"\"\",1,4\n7,1,5\n\"\"\"\",1,6\n");
    write("edges.csv", text);
    return read_node_table(base_.string()).edges;
  }
  void expect_refused(const std::string& text, const std::string& words) const {
    try {
      edges(text);
      ADD_FAILURE() << "expected: " << words;
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

TEST_F(NodeTable, IdsMayBeQuoted) {
  const Edges expected{{0, 2}, {3, 1}};
  EXPECT_EQ(edges("\"a\",\"New York, NY\"\n\"the \"\"c\"\"\", b\n"), expected);
  EXPECT_EQ(edges("\"source\",\"target\"\r\na,\"New York, NY\"\r\n\"the \"\"c\"\"\",\"b\"\r\n"),
            expected);
  EXPECT_EQ(edges("\"a\" \"New York, NY\"\n\"the \"\"c\"\"\"\tb\n"), expected);
}

TEST_F(NodeTable, BlanksMayPartIdsOrSurroundThem) {
  const Edges expected{{0, 1}, {4, 0}};
  for (const char* text : {"a b\n7 a", "a\t\tb\n\t\n7 \t a\n", " a , b \n\n7,\ta\n", "a,b\n7 a\n"})
    EXPECT_EQ(edges(text), expected) << text;
  EXPECT_EQ(edges("a,\"\"\"\"\n"), (Edges{{0, 5}})) << "a quote alone";
}

TEST_F(NodeTable, SemicolonsPartIds) {
  EXPECT_EQ(edges("von;nach\na;b\n7; \"New York, NY\"\n"), (Edges{{0, 1}, {4, 2}}));
}

TEST_F(NodeTable, WhatIsMissingIsNamedBesideWhatIsThere) {
  const auto refused = [&](const std::string& nodes, const std::string& words) {
    write("nodes.csv", nodes);
    write("edges.csv", "from,to\nanna,bert\n");
    try {
      read_node_table(base_.string());
      ADD_FAILURE() << "expected: " << words;
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused(
      "id,class,x\nanna,A,1\nbert,B,2\n",
      "nodes.csv:1: column 'class' is not a number, and no column is called label: expected id, "
      "label (the class of a node) and numbers, found id, class, x");
  refused(
      "name,label,x\n1,A,1\n2,B,2\n",
      "edges.csv:2: node 'anna' is not in nodes.csv, where nodes are numbered from 0: no column is "
      "called id");
}

TEST_F(NodeTable, WordsAreNoFeaturesAndFurtherColumnsOfEdgesAreNotRead) {
  write("nodes.csv", "id,label,age,office\nanna,A,31,Porto\nbert,B,42,\n");
  write("edges.csv", "from,to,mails,since\nanna,bert,7,2020-01-01\n");
  const CitationGraph graph = read_node_table(base_.string());
  EXPECT_EQ(graph.feature_names, std::vector<std::string>{"age"});
  EXPECT_EQ(graph.left_out, std::vector<std::string>{"office"});
  EXPECT_EQ(graph.edge_columns, (std::vector<std::string>{"mails", "since"}));
  EXPECT_EQ(graph.edges, (Edges{{0, 1}}));
  write("edges.csv", "from,to,mails\nanna,bert,7\nbert,anna\n");
  EXPECT_THROW(read_node_table(base_.string()), FileError);
  write("nodes.csv", "id,label,age\nanna,A,31\nbert,B,42\ncarl,A,4O\n");
  write("edges.csv", "anna,bert\n");
  EXPECT_THROW(read_node_table(base_.string()), FileError) << "a slip is no word";
}

TEST_F(NodeTable, AFirstLineWithoutANodeIsAHeader) {
  const Edges expected{{0, 1}};
  for (const char* header : {"", "source,target\n", "from,to\n", "\nid1\tid2\n", "u v\n"})
    EXPECT_EQ(edges(header + std::string("a,b\n")), expected) << header;
}

TEST_F(NodeTable, ASlipInTheFirstEdgeIsNoHeader) {
  expect_refused("a,q\n", "edges.csv:1: node 'q' is not in nodes.csv");
  expect_refused("8,9\n7,a\n", "edges.csv:1: node '8' is not in nodes.csv");
  expect_refused("from,to\nfrom,to\n", "edges.csv:2: node 'from' is not in nodes.csv");
  expect_refused("a,b,7\n", "edges.csv:1: expected two nodes");
  expect_refused("a,\"b\n", "edges.csv:1: a quoted id has no closing quote");
  expect_refused("a,\"b\"c\n",
                 "edges.csv:1: expected the id's end after a closing quote, found 'c'");
}

}  // namespace
}  // namespace fovea::data
