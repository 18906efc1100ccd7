#include "systems/system.h"

#include "systems/gat/task.h"
#include "systems/normaliser_option.h"

namespace fovea::systems::gat {
namespace {

const Registration registered{{
    .info =
        {.name = "gat",
         .number = 14,
         .title = "Graph attention",
         .idea = "A node of a graph decides how much to listen to each of its neighbours, and to "
                 "itself; what it hears becomes its new features. "
                 "The structure is the graph: a query sees the keys at the other ends of its edges "
                 "and no others, so a graph of a million edges costs a "
                 "million scores, never nodes × nodes.\n\nWithout a graph of yours, one is made "
                 "up: papers, which "
                 "cite their own field, and surveys, which everyone cites "
                 "and which tell nothing. A paper's own words are few: it must listen to its "
                 "neighbours, and learn to look past the surveys.",
         .paper =
             "Veličković, Cucurull, Casanova, Romero, Liò & Bengio 2018; Brody, Alon & Yahav 2022",
         .equation =
             R"(e_{ij} = \operatorname{LeakyReLU}(a_1^\top W h_i + a_2^\top W h_j), \quad h'_i = \operatorname{ELU}\Big(\sum_{j \in N(i) \cup \{i\}} \operatorname{softmax}_j(e_{ij})\, W h_j\Big))",
         .code = "auto mixed = fovea::attend(query, key, value,  // [nodes, heads, 1 | 1 | width]\n"
                 "                           {.score = fovea::RankOne{0.2},\n"
                 "                            .structure = fovea::Graph{row_offsets, columns}},\n"
                 "                           {.dropout_p = 0.6});",
         .triple = {.query = "a1·W h_i",
                    .key = "a2·W h_j",
                    .value = "W h_j",
                    .score = "LeakyReLU of the sum",
                    .normaliser = "softmax",
                    .structure = "edges and self"},
         .formats =
             {"generated: papers and surveys (nodes=, edges=, words=, classes=)",
              "a folder in Planetoid's text form: meta.txt, edges.txt, features.txt, labels.txt, "
              "split_*.txt",
              "a folder with nodes.csv (id,label,split,features…) and edges.csv (two ids on a "
              "line)"},
         .expect = "measured: Cora 82.8 ± 0.7 %, Citeseer 72.0 ± 1.0 % (20 runs)"},
    .options =
        {Option("layers", 2, "number of layers of attention").between(1, 16),
         Option("heads", 8, "number of heads of every layer but the last").between(1, 64),
         Option("width", 8, "width of a head, in every layer but the last").between(1, 512),
         Option("output_heads", 1, "number of heads of the last layer, averaged").between(1, 64),
         Option("dropout", 0.6, "dropout of each layer's input").between(0, 0.95),
         Option("attention_dropout", 0.6, "dropout of the attention weights").between(0, 0.95),
         Option("version", "gat", "gatv2: the ranking of neighbours may differ from node to node")
             .among({"gat", "gatv2"}),
         normaliser_option({"uniform"},
                           "how scores become weights; uniform: the mean of the neighbours, as a "
                           "graph convolution takes it"),
         Option("features", "auto",
                "rows: each node's features are divided by their sum; columns: each feature is "
                "standardised; auto: rows for words, columns for the numbers of a table")
             .among({"auto", "rows", "columns"}),
         Option("directed", false, "an edge u v only lets u see v; otherwise v also sees u"),
         Option("partition", "whole",
                "over ranks: contiguous and edge_cut give each rank some nodes, so that it holds a "
                "part of the graph; whole: each computes on all of it")
             .among({"whole", "contiguous", "edge_cut"}),
         Option("nodes", 1500, "generated: number of nodes").between(50, 10000000),
         Option("edges", 0, "generated: approximate number of edges; 0: seven for each node")
             .between(0, 100000000),
         Option("reach", 0,
                "generated: how far from its own number a node cites others; 0: any distance")
             .between(0, 10000000),
         Option("words", 240, "generated: number of different words").between(20, 100000),
         Option("classes", 5, "generated: number of fields (classes)").between(2, 100)},
    .recipe = train::Recipe{.epochs = 1000,
                            .batch = 1000000000,
                            .optimiser = "adam",
                            .rate = 0.005,
                            .weight_decay = 5e-4,
                            .patience = 300,
                            .monitor = "joint"},
    .tour = {"epochs=150", "heads=4", "edges=5000", "rate=0.01", "dropout=0.3",
             "attention_dropout=0.3", "weight_decay=0.0001"},
    .make = make_graph_attention,
}};

}  // namespace
}  // namespace fovea::systems::gat
