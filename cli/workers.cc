#include "cli/workers.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/verbs/verbs.h"
#include "train/interrupt.h"
#include "train/ranks/local_store.h"

namespace fovea::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Rank {
  std::unique_ptr<Child> child;
  bool ended = false;
  int status = 0;

  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }
  bool was_killed() const { return WIFSIGNALED(status); }
};

// The variables of torchrun.
std::vector<std::string> environment_of(int rank, const Workers& workers, int port, int attempt) {
  return {fmt::format("RANK={}", rank),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("WORLD_SIZE={}", workers.count),
          fmt::format("LOCAL_WORLD_SIZE={}", workers.count),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", port),
          "TORCHELASTIC_USE_AGENT_STORE=True",
          fmt::format("TORCHELASTIC_RESTART_COUNT={}", attempt)};
}

std::vector<Rank> start(const Workers& workers, const std::vector<std::string>& arguments, int port,
                        int attempt) {
  std::vector<Rank> ranks(static_cast<size_t>(workers.count));
  for (int rank = 0; rank < workers.count; ++rank) {
    std::vector<std::string> own = arguments;
    if (rank > 0) own.insert(own.end(), workers.others.begin(), workers.others.end());
    ranks[static_cast<size_t>(rank)].child = std::make_unique<Child>(
        fmt::format("rank {}", rank), own, environment_of(rank, workers, port, attempt),
        rank == 0 ? Words::kPrinted : Words::kKept);
  }
  return ranks;
}

// After the first failure the others find out by themselves. Who does not is asked to stop, and killed
// at last.
void wait_for_all(std::vector<Rank>& ranks) {
  constexpr auto kPatience = std::chrono::seconds(5), kLongest = std::chrono::seconds(60);
  std::optional<Clock::time_point> failed;
  for (size_t running = ranks.size(); running > 0;) {
    if (train::interrupted())
      for (Rank& rank : ranks)
        if (!rank.ended) rank.child->ask_to_stop();
    for (Rank& rank : ranks) {
      if (rank.ended || waitpid(rank.child->pid(), &rank.status, WNOHANG) <= 0) continue;
      rank.ended = true;
      rank.child->has_ended();
      --running;
      if (rank.code() != kDone && !failed) failed = Clock::now();
    }
    for (Rank& rank : ranks) {
      if (!failed || rank.ended) continue;
      if (Clock::now() - *failed > kLongest)
        rank.child->kill_now();  // it may have been saving until now
      else if (Clock::now() - *failed > kPatience)
        rank.child->ask_to_stop();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The one that failed by itself, not because it lost another; a killed one before all.
const Rank* cause(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks)
    if (rank.was_killed()) return &rank;
  for (const Rank& rank : ranks)
    if (rank.code() != kDone && rank.code() != kRankLost) return &rank;
  for (const Rank& rank : ranks)
    if (rank.code() != kDone) return &rank;
  return nullptr;
}

}  // namespace

void add_timeout(CLI::App& app, double& seconds) {
  add_number(app, "--timeout", seconds, 1, 1e6,
             fmt::format("seconds for which another rank may give no sign of life; default: {:g}",
                         kTimeoutSeconds));
}

void add_ranks(CLI::App& app, RankOptions& options) {
  add_integer(
      app, "--workers", [&options](int64_t n) { options.workers = static_cast<int>(n); }, 1,
      kMostWorkers,
      "number of processes on this machine that share the work; torchrun, mpirun and srun start "
      "processes on several machines");
  add_timeout(app, options.timeout);
}

std::optional<train::Place> place_of(int workers) {
  auto place = train::place_in_environment();
  if (workers > 0 && place)
    throw UsageError(fmt::format(
        "--workers {}: a launcher has started this process as rank {} of {} already; give one of "
        "both",
        workers, place->rank, place->size));
  return place;
}

int run_workers(const Workers& workers, const std::vector<std::string>& arguments,
                train::Progress& progress) {
  const train::InterruptGuard guard;
  const train::SavesWhenAsked passes_it_on;
  for (int attempt = 0;; ++attempt) {
    const train::LocalStore store;
    std::vector<Rank> ranks = start(workers, arguments, store.port(), attempt);
    wait_for_all(ranks);
    const Rank* const first = cause(ranks);
    if (train::interrupted()) throw train::Interrupted(workers.stopped);
    if (!first) return kDone;
    const bool lost = first->was_killed() || first->code() == kRankLost;
    const std::string words =
        words_of_end(first->child->name(), first->status, first->child->words());
    if (!lost || attempt == workers.restarts) {
      // Rank 0 has printed its own message, which names the failure of another.
      const bool said = ranks[0].ended && !ranks[0].was_killed() && ranks[0].code() != kDone;
      if (!said || first->was_killed()) std::cerr << "fovea: " << words << '\n';
      return first->was_killed() ? kRankLost : first->code();
    }
    progress.line(fmt::format("{}; starting all ranks again from the last save ({} of {})", words,
                              attempt + 1, workers.restarts));
  }
}

}  // namespace fovea::cli
