// A process of this program that another one starts and waits for.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fovea::cli {

// What a child prints: kept in memory, or printed where its parent prints. One that prints also reads
// what its parent was given to read.
enum class Words { kKept, kPrinted };

// The destructor sends a child that still runs the signal to save and stop, and waits for it.
class Child {
 public:
  // `environment`: entries "NAME=value" in place of those of the same name.
  Child(std::string name, std::vector<std::string> arguments,
        const std::vector<std::string>& environment = {}, Words words = Words::kKept);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  void ask_to_stop();
  void kill_now() const;
  void has_ended() { pid_ = -1; }
  // Its error message, without the prefix of the command; empty where it was printed.
  std::string words() const;

 private:
  [[noreturn]] void become(pid_t parent, char** arguments, char** environment) const;

  std::string name_;
  int words_ = -1;
  pid_t pid_ = -1;
  bool asked_ = false;
};

// How a child ended: its own message, or, if it printed none, the signal or the code.
std::string words_of_end(const std::string& name, int status, const std::string& own);

}  // namespace fovea::cli
