#include "cli/child.h"

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
#include <stdexcept>
#include <string_view>
#include <utility>

extern char** environ;

namespace fovea::cli {
namespace {

[[noreturn]] void fail(int error) {
  throw std::runtime_error(fmt::format("no process could be started: {}", std::strerror(error)));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// That of this process, with some entries in place of others.
std::vector<std::string> environment_with(const std::vector<std::string>& own) {
  std::vector<std::string> out = own;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry; ++entry)
    if (std::none_of(own.begin(), own.end(),
                     [&](const std::string& one) { return name_of(one) == name_of(*entry); }))
      out.emplace_back(*entry);
  return out;
}

}  // namespace

Child::Child(std::string name, std::vector<std::string> arguments,
             const std::vector<std::string>& environment, Words words)
    : name_(std::move(name)) {
  if (words == Words::kKept && (words_ = memfd_create("fovea-words", MFD_CLOEXEC)) < 0) fail(errno);
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> given = pointers_to(arguments), known = pointers_to(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) {
    const int error = errno;
    if (words_ >= 0) close(words_);
    fail(error);
  }
  if (pid_ == 0) become(parent, const_cast<char**>(given.data()), const_cast<char**>(known.data()));
}

Child::~Child() {
  if (pid_ > 0) {
    ask_to_stop();
    waitpid(pid_, nullptr, 0);
  }
  if (words_ >= 0) close(words_);
}

void Child::ask_to_stop() {
  if (std::exchange(asked_, true)) return;
  kill(pid_, SIGTERM);
  kill(pid_, SIGCONT);  // a stopped one would not hear
}

void Child::kill_now() const { kill(pid_, SIGKILL); }

std::string Child::words() const {
  if (words_ < 0) return "";
  std::string text(1 << 16, '\0');  // a message is a line
  text.resize(
      static_cast<size_t>(std::max<ssize_t>(pread(words_, text.data(), text.size(), 0), 0)));
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kPrefix = "fovea: ";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

// In the child, where only what is safe in a signal's handler may be called: the parent has threads.
void Child::become(pid_t parent, char** arguments, char** environment) const {
  // A process group of its own: Ctrl-C at the terminal then reaches only the parent, which passes it
  // on once (a second signal would end a child before it has saved). If the parent ends in any way,
  // the kernel sends the child the signal to save and stop.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);  // it ended before the kernel knew
  const int nothing = open("/dev/null", O_RDWR);
  const bool kept = words_ >= 0;
  if (nothing >= 0 &&
      (!kept || (dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
                 dup2(words_, STDERR_FILENO) >= 0)))
    execve("/proc/self/exe", arguments, environment);
  constexpr std::string_view kWords =
      "fovea: /proc/self/exe: cannot be started, expected this program; is /proc mounted?\n";
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(127);
}

std::string words_of_end(const std::string& name, int status, const std::string& own) {
  if (WIFSIGNALED(status))
    return fmt::format("{}: ended by signal {} ({})", name, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (!own.empty()) return own;
  return fmt::format("{}: ended with code {}, without a message", name, WEXITSTATUS(status));
}

}  // namespace fovea::cli
