#include "bench/run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bench/memory.h"
#include "bench/roofs/roof.h"
#include "bench/threads.h"

namespace fovea::bench {
namespace {

// Largest difference relative to the largest value, over outputs and gradients.
double largest_error(const Tensors& ours, const Tensors& theirs) {
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const at::Tensor a = ours[i].detach().to(at::kDouble), b = theirs[i].detach().to(at::kDouble);
    if (a.sizes() != b.sizes())
      throw std::runtime_error(fmt::format("result {}: shapes differ", i));
    const double scale = b.abs().max().item<double>();
    const double error = (a - b).abs().max().item<double>() / (scale > 0 ? scale : 1);
    if (!(error <= worst)) worst = error;  // a NaN is kept
  }
  return worst;
}

double checked(const Row& row, const std::string& other, const Tensors& ours, const Tensors& theirs,
               double tolerance) {
  const double error = largest_error(ours, theirs);
  if (error <= tolerance) return error;
  throw std::runtime_error(
      fmt::format("{}: differs from {} by {:.2g} of the largest value, allowed {:.2g}", row.name,
                  other, error, tolerance));
}

double check(const Row& row, const Instance& instance) {
  double worst = 0;
  if (instance.expected) {
    worst = checked(row, "the reference", instance.ours_to_check(), instance.expected(),
                    instance.tolerance);
  }
  if (instance.peers.empty()) return worst;
  const Tensors ours = instance.ours.run();
  for (const Contender& peer : instance.peers) {
    Tensors theirs = peer.run();
    if (instance.comparable) theirs = instance.comparable(theirs);
    worst = std::max(worst, checked(row, peer.name, ours, theirs, instance.tolerance));
  }
  return worst;
}

double amount(const Work& work, Roof roof) {
  switch (roof) {
    case Roof::kFma:
    case Roof::kBf16:
      return work.flops;
    case Roof::kTriad:
    case Roof::kTriadStreamed:
    case Roof::kGather:
      return work.bytes;
    case Roof::kExp:
    case Roof::kTanh:
      return work.elements;
  }
  return 0;
}

struct Memory {
  std::optional<double> ours, peer;
};

// In a child, so that scratch another row left behind does not hide this one's.
Memory measure_memory(const Row& row, int threads, const std::string& simd_target) {
  const auto numbers = in_child([&] {
    const HeldTarget held(simd_target);
    at::set_num_threads(threads);
    at::ones({1 << 16}).add_(1);  // libtorch's threads and their stacks
    const Instance instance = row.make();
    std::vector<double> bytes;
    const auto measure = [&](const Contender& contender) {
      const auto extra = peak_extra_memory([&] { contender.run(); });
      if (extra) bytes.push_back(static_cast<double>(*extra));
    };
    measure(instance.ours);
    if (!instance.peers.empty()) measure(instance.peers.front());
    return bytes;
  });
  if (!numbers) throw std::runtime_error(row.name + ": failed while its memory was measured");
  Memory memory;
  if (!numbers->empty()) memory.ours = numbers->at(0);
  if (numbers->size() > 1) memory.peer = numbers->at(1);
  return memory;
}

Measured measure(const Row& row, const Instance& instance, Roofs& roofs, const Protocol& protocol) {
  Measured m;
  m.largest_error = check(row, instance);
  std::vector<const Contender*> contenders = {&instance.ours};
  for (const Contender& peer : instance.peers) contenders.push_back(&peer);
  for (const Contender& yardstick : instance.yardsticks) contenders.push_back(&yardstick);
  std::vector<std::function<void()>> runs;
  for (const Contender* contender : contenders) runs.push_back([contender] { contender->run(); });

  const Timed timed = take_turns(
      runs, [&](double seconds) { return roofs.sample(row.roof, seconds); }, protocol);
  const std::vector<double>& ours = timed.seconds[0];
  const double seconds = median(ours);
  m.milliseconds = 1e3 * seconds;
  m.spread = spread(ours);
  m.rounds = ours.size();
  const Work work = instance.work.value_or(row.work);
  m.gflops = 1e-9 * work.flops / seconds;
  m.gbps = 1e-9 * work.bytes / seconds;
  // roof x time = what the roof would have done in our time; a round's own sample answers for the
  // round.
  std::vector<double> possible;
  for (size_t i = 0; i < ours.size(); ++i) possible.push_back(timed.gauge[i] * ours[i]);
  const double reached = median(possible);
  m.percent_roof = reached > 0 ? 100 * amount(work, row.roof) / reached : 0;

  double best = std::numeric_limits<double>::infinity();
  for (size_t c = 1; c < contenders.size(); ++c) {
    const Contender& other = *contenders[c];
    m.other_ms[other.name] = 1e3 * median(timed.seconds[c]);
    m.times[other.name] = paired_ratio(ours, timed.seconds[c]);
    if (other.pairs > 0)
      m.times_per_pair[other.name] = m.times[other.name] * other.pairs / work.pairs;
    const bool is_peer = c <= instance.peers.size();
    if (is_peer && m.other_ms[other.name] < best) {
      best = m.other_ms[other.name];
      m.best_peer = other.name;
      m.times_peer = paired_ratio(timed.seconds[c], ours);
    }
  }
  return m;
}

}  // namespace

size_t Report::met() const {
  size_t count = 0;
  for (const RowReport& row : rows) {
    count += std::count_if(row.figures.begin(), row.figures.end(),
                           [](auto& f) { return f.verdict && f.verdict->met; });
  }
  return count;
}

size_t Report::missed() const {
  size_t count = 0;
  for (const RowReport& row : rows) {
    count += std::count_if(row.figures.begin(), row.figures.end(),
                           [](auto& f) { return f.verdict && !f.verdict->met; });
  }
  return count;
}

std::vector<Row> select(std::vector<Row> rows, const std::string& glob) {
  std::erase_if(rows,
                [&](const Row& row) { return fnmatch(glob.c_str(), row.name.c_str(), 0) != 0; });
  return rows;
}

Report run(const std::vector<Row>& rows, const Options& options,
           const std::function<void(const std::string&)>& progress) {
  Report report;
  report.machine = this_machine();
  report.threads = options.threads > 0 ? options.threads : report.machine.cores;
  report.cache = options.protocol.cache == Cache::kCold ? "cold" : "warm";
  const auto target_of = [&](const Row& row) {
    return row.simd_target.empty() ? options.simd_target : row.simd_target;
  };

  std::map<std::string, Memory> memory;
  for (const Row& row : rows) {
    if (!options.memory) break;
    progress("memory " + row.name);
    memory[row.name] = measure_memory(row, report.threads, target_of(row));
  }

  at::set_num_threads(report.threads);
  Roofs roofs(torch_threads());
  Context context;
  context.two_wide_units = report.two_wide_units = has_two_wide_units(roofs);
  {
    const HeldTarget held(options.simd_target);
    for (Roof roof : kRoofs) {
      progress(std::string("roof ") + name(roof));
      report.roofs[name(roof)] = 1e-9 * roofs.best(roof);
    }
  }

  for (const Row& row : rows) {
    Measured measured;
    if (row.measure == Measure::kTimeAndMemory) {
      progress(row.name);
      const HeldTarget held(target_of(row));
      Protocol protocol = options.protocol;
      protocol.seconds = std::min(protocol.seconds, row.seconds);
      measured = measure(row, row.make(), roofs, protocol);
    }
    measured.name = row.name;
    measured.roof = name(row.roof);
    measured.tensor_bytes = row.tensor_bytes;
    measured.memory = memory[row.name].ours;
    measured.peer_memory = memory[row.name].peer;
    context.rows[row.name] = measured;
    report.rows.push_back({measured, row.pass, row.work, target_of(row), row.series, {}});
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const Figure& figure : rows[i].figures) {
      report.rows[i].figures.push_back(
          {figure.text, figure.judge(report.rows[i].measured, context)});
    }
  }
  return report;
}

}  // namespace fovea::bench
