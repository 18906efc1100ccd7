#include "cli/side_by_side.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <map>
#include <memory>
#include <thread>

#include "cli/child.h"
#include "cli/train_arguments.h"
#include "cli/verbs/verbs.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

std::vector<std::string> quiet_arguments_of(const systems::TrainRequest& request, int threads) {
  std::vector<std::string> out = arguments_of(request, threads);
  out.emplace_back("--quiet");
  return out;
}

}  // namespace

void train_side_by_side(const std::vector<Job>& jobs, const Processes& processes,
                        train::Progress& progress) {
  const train::InterruptGuard guard;
  const train::SavesWhenAsked passes_it_on;
  std::map<pid_t, std::unique_ptr<Child>> running;
  size_t next = 0, done = 0;
  int exit_code = 0;
  std::string words;
  while (true) {
    const bool stopping = exit_code != 0 || train::interrupted();
    while (!stopping && running.size() < static_cast<size_t>(processes.jobs) &&
           next < jobs.size()) {
      auto child = std::make_unique<Child>(
          jobs[next].name, quiet_arguments_of(jobs[next].request, processes.threads));
      ++next;
      const pid_t pid = child->pid();
      running.emplace(pid, std::move(child));
    }
    if (running.empty()) break;
    if (stopping)
      for (const auto& [pid, child] : running) child->ask_to_stop();
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      progress.step(
          static_cast<int64_t>(done), static_cast<int64_t>(jobs.size()),
          fmt::format("{} of {} runs done, {} running", done, jobs.size(), running.size()));
      continue;
    }
    const auto found = running.find(pid);
    if (found == running.end()) continue;
    found->second->has_ended();
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) {
      ++done;
    } else if (exit_code == 0) {
      exit_code = code;
      words = words_of_end(found->second->name(), status, found->second->words());
    }
    running.erase(found);
  }
  if (train::interrupted())
    throw train::Interrupted("stopped: the same command with --resume continues");
  progress.finish();
  if (exit_code == kWrongUsage) throw UsageError(words);
  if (exit_code != 0) throw std::runtime_error(words);
}

}  // namespace fovea::cli
