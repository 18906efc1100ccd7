#include <nlohmann/json.hpp>

#include "bench/report/report.h"

namespace fovea::bench {
namespace {

using Json = nlohmann::ordered_json;

Json machine_json(const Machine& m) {
  return {{"processor", m.processor},     {"cores", m.cores},       {"memory_gb", m.memory_gb},
          {"l1_bytes", m.l1_bytes},       {"l2_bytes", m.l2_bytes}, {"l3_bytes", m.l3_bytes},
          {"simd_target", m.simd_target}, {"bf16", m.bf16},         {"libtorch", m.libtorch},
          {"compiler", m.compiler},       {"system", m.system},     {"load", m.load}};
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const RowReport& row) {
  const Measured& m = row.measured;
  Json json = {{"name", m.name},
               {"pass", name(row.pass)},
               {"simd_target", row.simd_target},
               {"ms", m.milliseconds},
               {"spread", m.spread},
               {"rounds", m.rounds},
               {"gflops", m.gflops},
               {"gbps", m.gbps},
               {"roof", m.roof},
               {"pct_roof", m.percent_roof},
               {"best_peer", m.best_peer},
               {"x_peer", m.times_peer},
               {"others_ms", m.other_ms},
               {"times_per_pair", m.times_per_pair},
               {"largest_error", m.largest_error},
               {"memory_bytes", optional_json(m.memory)},
               {"peer_memory_bytes", optional_json(m.peer_memory)},
               {"tensor_bytes", m.tensor_bytes},
               {"pairs", row.work.pairs}};
  if (row.series) {
    json["series"] = {{"name", row.series->name},
                      {"n", row.series->n},
                      {"time_slope", row.series->time_slope},
                      {"memory_slope", row.series->memory_slope}};
  }
  json["figures"] = Json::array();
  for (const Judged& figure : row.figures) {
    json["figures"].push_back(
        {{"figure", figure.figure},
         {"value", figure.verdict ? Json(figure.verdict->value) : Json(nullptr)},
         {"met", figure.verdict ? Json(figure.verdict->met) : Json(nullptr)}});
  }
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const Report& report) {
  Json json = {{"version", 1},
               {"machine", machine_json(report.machine)},
               {"threads", report.threads},
               {"two_wide_units", report.two_wide_units},
               {"cache", report.cache},
               {"roofs", report.roofs},
               {"met", report.met()},
               {"missed", report.missed()},
               {"rows", Json::array()}};
  for (const RowReport& row : report.rows) json["rows"].push_back(row_json(row));
  return json;
}

}  // namespace fovea::bench
