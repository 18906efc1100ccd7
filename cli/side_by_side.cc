#include "cli/side_by_side.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "cli/verbs/verbs.h"
#include "train/interrupt.h"

extern char** environ;

namespace fovea::cli {
namespace {

// The command line for a request.
std::vector<std::string> arguments_of(const systems::TrainRequest& request, int threads) {
  std::vector<std::string> out = {"fovea", "train", request.system, "--quiet"};
  if (request.resume) out.push_back("--resume");
  if (request.overwrite) out.push_back("--overwrite");
  const auto add = [&](const char* name, const std::string& value) {
    out.insert(out.end(), {name, value});
  };
  if (!request.data.empty()) add("--data", request.data);
  for (const std::string& assignment : request.set) add("--set", assignment);
  if (request.epochs) add("--epochs", std::to_string(*request.epochs));
  add("--seed", std::to_string(request.seed));
  add("--data-seed", std::to_string(request.data_seed));
  add("--seeds", std::to_string(request.seeds));
  if (request.folds > 0) add("--folds", std::to_string(request.folds));
  add("--device", request.device);
  add("--checkpoint", fmt::format("{}", request.save_every_seconds));
  add("--threads", std::to_string(threads));
  add("--out", request.out.string());
  if (!request.only.empty()) add("--only", request.only);
  return out;
}

// A child process whose output is kept in memory. The destructor sends a child that still runs the
// signal to save and stop, and waits for it.
class Child {
 public:
  Child(std::string name, std::vector<std::string> arguments)
      : name_(std::move(name)), words_(memfd_create("fovea-words", MFD_CLOEXEC)) {
    if (words_ < 0) fail();
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
      const int error = errno;
      close(words_);
      errno = error;
      fail();
    }
    if (pid_ == 0) become(parent, pointers.data());
  }
  ~Child() {
    if (pid_ > 0) {
      ask_to_stop();
      waitpid(pid_, nullptr, 0);
    }
    close(words_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  void ask_to_stop() {
    if (!std::exchange(asked_, true)) kill(pid_, SIGTERM);
  }
  void has_ended() { pid_ = -1; }
  // The child's error message, without the prefix of the command.
  std::string words() const {
    std::string text(1 << 16, '\0');  // a message is a line
    text.resize(
        static_cast<size_t>(std::max<ssize_t>(pread(words_, text.data(), text.size(), 0), 0)));
    while (text.ends_with('\n')) text.pop_back();
    constexpr std::string_view kPrefix = "fovea: ";
    return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  }

 private:
  [[noreturn]] static void fail() {
    throw std::runtime_error(
        fmt::format("--jobs: no process could be started: {}", std::strerror(errno)));
  }
  // Runs in the child, where only functions that are safe in a signal handler may be called,
  // because the parent has threads.
  [[noreturn]] void become(pid_t parent, char** arguments) const {
    // A process group of its own: Ctrl-C at the terminal then reaches only the parent, which passes it
    // on once (a second signal would end a child before it has saved). If the parent ends in any way,
    // the kernel sends the child the signal to save and stop.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(128 + SIGTERM);  // the parent ended before that was set
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
        dup2(words_, STDERR_FILENO) >= 0)
      execve("/proc/self/exe", arguments, environ);
    _exit(127);
  }

  std::string name_;
  int words_;
  pid_t pid_ = -1;
  bool asked_ = false;
};

// The message about a child that failed: its own, or, if it printed none, how it ended.
std::string words_of(const std::string& name, int status, const std::string& own) {
  if (WIFSIGNALED(status))
    return fmt::format("{}: ended by signal {} ({})", name, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (!own.empty()) return own;
  return fmt::format("{}: ended with code {}, without a message", name, WEXITSTATUS(status));
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
      auto child = std::make_unique<Child>(jobs[next].name,
                                           arguments_of(jobs[next].request, processes.threads));
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
      words = words_of(found->second->name(), status, found->second->words());
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
