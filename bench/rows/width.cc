// Head widths: libtorch's fused attention at each, and no cliff between neighbours. Different key
// and value widths too.
#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

struct Width {
  std::string name;
  int64_t width, value_width;
  std::vector<std::string> neighbours;
};

const Width kWidths[] = {{"32", 32, 32, {"64"}},
                         {"64", 64, 64, {}},
                         {"80", 80, 80, {"64", "128"}},
                         {"128", 128, 128, {"64", "256"}},
                         {"256", 256, 256, {"128"}},
                         {"64-to-128", 64, 128, {"64", "128"}},
                         {"128-to-48", 128, 48, {"64", "128"}}};

std::string width_row_name(const std::string& width, Pass pass) {
  return row_name("dot-width", width, "dense", pass);
}

Row width_row(const Width& w, Pass pass) {
  const Shape shape{.queries = 1024, .keys = 1024, .width = w.width, .value_width = w.value_width};
  std::vector<Figure> figures = {times_peer_at_least(1.0)};
  if (!w.neighbours.empty()) {
    std::vector<std::string> rows;
    for (const std::string& neighbour : w.neighbours)
      rows.push_back(width_row_name(neighbour, pass));
    figures.push_back(no_cliff(0.75, rows));
  }
  return {.name = width_row_name(w.name, pass),
          .pass = pass,
          .work = dot_work(pass, shape, pairs_dense(1024, 1024)),
          .make =
              [=] {
                const Operands x(shape);
                return Instance{.ours = x.ours(pass, {}),
                                .peers = {x.peer(pass, "sdpa", [](auto& q, auto& k, auto& v) {
                                  return peers::sdpa(q, k, v);
                                })}};
              },
          .figures = std::move(figures),
          .tensor_bytes = tensor_bytes(shape)};
}

}  // namespace

std::vector<Row> width_rows() {
  std::vector<Row> rows;
  for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
    for (const Width& width : kWidths) rows.push_back(width_row(width, pass));
  }
  return rows;
}

}  // namespace fovea::bench
