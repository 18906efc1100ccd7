// The command, loaded once and forked for every call: most of a short call is the loading of libtorch.
//
//   fovea_prefork              serves the socket that is its standard input (prefork.py)
//   fovea_prefork ARGUMENTS    is the command, for what a call starts of itself
//
// A request is a message of fields that end with a zero byte, and brings along the two files that become standard output
// and standard error. The first letter of a field says what it is: d the folder to be in, v a variable NAME=value,
// l a limit RESOURCE=number, a an argument. The answers are two messages: the process's number, and how it ended, as waitpid tells it.
//
// A call ends with the last line of the program: what libtorch then takes apart, which is most of what is left of the time, is left out.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Program = int(int, char**);

struct Request {
  std::string fields;
  int streams[2] = {-1, -1};
};

// Whether there was one: the other end may be closed.
bool receive(Request& request) {
  static char bytes[1 << 16];
  alignas(cmsghdr) char beside[CMSG_SPACE(sizeof request.streams)];
  iovec part{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = beside;
  message.msg_controllen = sizeof beside;
  const ssize_t length = recvmsg(STDIN_FILENO, &message, 0);
  const cmsghdr* header = length > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  memcpy(request.streams, CMSG_DATA(header), sizeof request.streams);
  request.fields.assign(bytes, static_cast<size_t>(length));
  return true;
}

void answer(long number) {
  const std::string text = std::to_string(number);
  if (send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL) < 0) _exit(1);
}

void limit(const char* text) {
  const char* number = strchr(text, '=') + 1;
  const rlimit both{strtoull(number, nullptr, 10), strtoull(number, nullptr, 10)};
  if (setrlimit(static_cast<__rlimit_resource>(atoi(text)), &both) != 0) _exit(126);
}

[[noreturn]] void become(Request& request, Program* program, char* name) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  const int streams[] = {nothing, request.streams[0], request.streams[1]};
  for (int place = 0; place < 3; ++place)
    if (dup2(streams[place], place) < 0) _exit(126);
  for (const int stream : streams) close(stream);
  std::vector<char*> arguments{name};
  std::vector<const char*> limits;
  for (size_t begin = 0; begin < request.fields.size();) {
    char* field = request.fields.data() + begin;
    begin += strlen(field) + 1;
    if (*field == 'a') arguments.push_back(field + 1);
    if (*field == 'v') putenv(field + 1);
    if (*field == 'l') limits.push_back(field + 1);
    if (*field == 'd' && chdir(field + 1) != 0) _exit(126);
  }
  arguments.push_back(nullptr);
  for (const char* text : limits) limit(text);
  _exit(program(static_cast<int>(arguments.size()) - 1, arguments.data()));
}

void serve(Program* program, char* name) {
  for (Request request; receive(request);) {
    const pid_t child = fork();
    if (child == 0) become(request, program, name);
    for (const int stream : request.streams) close(stream);
    answer(child);
    int status = 0;
    waitpid(child, &status, 0);
    answer(status);
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("OMP_WAIT_POLICY", "passive", 0);  // as the command does
  void* const library = dlopen(FOVEA_PROGRAM, RTLD_NOW | RTLD_GLOBAL);
  void* const entry = library == nullptr ? nullptr : dlsym(library, "fovea_program");
  if (entry == nullptr) {
    fprintf(stderr, "fovea_prefork: %s\n", dlerror());
    return 1;
  }
  auto* const program = reinterpret_cast<Program*>(entry);
  if (argc > 1) return program(argc, argv);
  serve(program, argv[0]);
}
