// Preloaded into a command, makes one of its calls fail: FOVEA_FAULT=CALL:N[+][:REASON] fails the
// N-th call of that kind (N+: and every later one) with the errno named; REASON kill ends the
// process there instead, as kill -9 would.
//
// Counted are calls on a user's files, standard output included, once the command's libraries are
// loaded; of memory, threads and mappings those that our own code asks for. What libtorch, the C
// library and the loader do for themselves is not ours to survive. FOVEA_FAULT_REPORT names a file
// that receives a line once the fault has happened: what it was, and on which file.
// FOVEA_FAULT=count fails nothing, and leaves there how many calls of each kind there were, from where
// (`site KIND CALLERS FIRST LAST`: the first and the last call that came from the same callers), and
// the address space in bytes (`space LOADED PEAK`): when the libraries were loaded, and at its largest.
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ios>
#include <iterator>
#include <new>

#include "tests/faults/callers.h"

namespace {

struct Wanted {
  char call[64] = "";
  long number = 0;
  bool later = false, kill = false;
  int error = 0;
};
Wanted wanted;
std::atomic<bool> armed{false};
constexpr const char* kCalls[] = {"open",   "create", "read",   "write",  "fsync", "close",
                                  "rename", "unlink", "memory", "thread", "mmap"};
std::atomic<long> counted[std::size(kCalls)];
bool counting = false;
bool watched[1024];  // descriptors of a user's files

template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int error_named(const char* name) {
  const struct {
    const char* name;
    int value;
  } known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EROFS", EROFS},
               {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM},
               {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT}, {"EPERM", EPERM}};
  for (const auto& one : known)
    if (strcmp(one.name, name) == 0) return one.value;
  return EIO;
}

// Raw system calls, so that reporting counts as nothing.
void report(const char* call, const char* file) {
  const char* path = getenv("FOVEA_FAULT_REPORT");
  if (path == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return;
  char line[512];
  const int length = snprintf(line, sizeof line, "%s %s\n", call, file);
  syscall(SYS_write, fd, line, length);
  syscall(SYS_close, fd);
}

// Whether calls of this kind are counted at all.
bool asks_for(const char* call) {
  return armed.load(std::memory_order_relaxed) && (counting || strcmp(call, wanted.call) == 0);
}

// Whether this call is the one: then errno is set, or the process is gone.
bool fails(const char* call, const char* file) {
  if (!asks_for(call)) return false;
  size_t kind = 0;
  while (strcmp(kCalls[kind], call) != 0) ++kind;
  const long number = ++counted[kind];
  // Files are written by one function for all: who asked it matters. Memory is asked for everywhere.
  if (counting) note_site(kind, number, file[0] == '\0' ? 1 : 96);
  if (number != wanted.number && !(wanted.later && number > wanted.number)) return false;
  if (number == wanted.number) report(call, file);
  if (wanted.kill) syscall(SYS_kill, getpid(), SIGKILL);
  errno = wanted.error;
  return true;
}

// Not the machine's files, nor libraries.
bool is_users(const char* path) {
  if (strncmp(path, "/dev/shm/", 9) == 0) return true;
  for (const char* start : {"/proc", "/sys", "/dev", "/usr", "/lib", "/etc"})
    if (strncmp(path, start, strlen(start)) == 0) return false;
  return strstr(path, ".so") == nullptr && strstr(path, "nvidia") == nullptr;
}

// Standard output is a user's file too. Standard error is not: a message that cannot be written has
// nowhere to go.
bool is_watched(int fd) { return fd >= 0 && fd < 1024 && (fd == 1 || watched[fd]); }
void watch(int fd, bool users) {
  if (fd >= 0 && fd < 1024) watched[fd] = users;
}

const char* name_of(int fd, char* buffer, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, buffer, size - 1);
  buffer[length < 0 ? 0 : length] = '\0';
  return buffer;
}

// The path of a file that is named within an open folder.
const char* within(int at, const char* path, char (&file)[520]) {
  char folder[256] = "";
  if (at != AT_FDCWD && path[0] != '/' && armed) name_of(at, folder, sizeof folder);
  snprintf(file, sizeof file, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", path);
  return file;
}

// A line of /proc/self/status, in bytes.
long space(const char* name) {
  char text[4096];
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY, 0);
  const long length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  text[length < 0 ? 0 : length] = '\0';
  const char* line = strstr(text, name);
  return line == nullptr ? 0 : 1024 * atol(line + strlen(name));
}
long space_loaded = 0;

void report_counts() {
  if (!armed.exchange(false)) return;
  char text[96];
  for (size_t kind = 0; kind < std::size(kCalls); ++kind) {
    snprintf(text, sizeof text, "%ld", counted[kind].load());
    report(kCalls[kind], text);
  }
  for (const Site& site : sites) {
    if (site.first == 0) continue;
    snprintf(text, sizeof text, "%s %016lx %ld %ld", kCalls[site.kind], site.callers, site.first,
             site.last);
    report("site", text);
  }
  snprintf(text, sizeof text, "%ld %ld", space_loaded, space("VmPeak:"));
  report("space", text);
}

void read_wish() {
  const char* text = getenv("FOVEA_FAULT");
  if (text == nullptr) return;
  counting = strcmp(text, "count") == 0;
  if (counting) atexit(report_counts);
  char copy[64];
  snprintf(copy, sizeof copy, "%s", text);
  char* number = strchr(copy, ':');
  if (number == nullptr) return;
  *number++ = '\0';
  char* reason = strchr(number, ':');
  if (reason != nullptr) *reason++ = '\0';
  snprintf(wanted.call, sizeof wanted.call, "%s", copy);
  wanted.number = atol(number);
  wanted.later = strchr(number, '+') != nullptr;
  wanted.kill = reason != nullptr && strcmp(reason, "kill") == 0;
  wanted.error = error_named(reason == nullptr ? "EIO" : reason);
}

void arm() {
  void* frame;
  backtrace(&frame, 1);  // loads what it needs
  dl_iterate_phdr(note_ours, nullptr);
  read_wish();
  space_loaded = space("VmSize:");
  armed = true;
}

int opened(int fd, const char* path) {
  watch(fd, fd >= 0 && armed && is_users(path));
  return fd;
}

}  // namespace

// The command's first words: its libraries are loaded and have set themselves up by then.
bool std::ios_base::sync_with_stdio(bool wanted_sync) {
  const bool before = original<bool(bool)>("_ZNSt8ios_base15sync_with_stdioEb")(wanted_sync);
  if (!armed) arm();
  return before;
}

extern "C" {

#define FOVEA_OPEN(NAME, FILE, PARAMETERS, ARGUMENTS)                                       \
  int NAME PARAMETERS {                                                                     \
    mode_t mode = 0;                                                                        \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                    \
      va_list list;                                                                         \
      va_start(list, flags);                                                                \
      mode = va_arg(list, mode_t);                                                          \
      va_end(list);                                                                         \
    }                                                                                       \
    char buffer[520];                                                                       \
    const char* file = FILE;                                                                \
    if (is_users(file) && fails((flags & O_ACCMODE) == O_RDONLY ? "open" : "create", file)) \
      return -1;                                                                            \
    return opened(original<int PARAMETERS>(#NAME) ARGUMENTS, path);                         \
  }
#define FOVEA_OPEN_BY_PATH(NAME)                                                       \
  FOVEA_OPEN(NAME, within(AT_FDCWD, path, buffer), (const char* path, int flags, ...), \
             (path, flags, mode))
#define FOVEA_OPEN_WITHIN(NAME)                                                          \
  FOVEA_OPEN(NAME, within(at, path, buffer), (int at, const char* path, int flags, ...), \
             (at, path, flags, mode))
FOVEA_OPEN_BY_PATH(open)
FOVEA_OPEN_BY_PATH(open64)
FOVEA_OPEN_WITHIN(openat)
FOVEA_OPEN_WITHIN(openat64)
#undef FOVEA_OPEN_WITHIN
#undef FOVEA_OPEN_BY_PATH
#undef FOVEA_OPEN

// How std::ifstream and std::ofstream open.
FILE* fopen64(const char* path, const char* mode) {
  if (is_users(path) && fails(mode[0] == 'r' ? "open" : "create", path)) return nullptr;
  FILE* file = original<FILE*(const char*, const char*)>("fopen64")(path, mode);
  if (file != nullptr) opened(fileno(file), path);
  return file;
}
FILE* fopen(const char* path, const char* mode) {
  if (is_users(path) && fails(mode[0] == 'r' ? "open" : "create", path)) return nullptr;
  FILE* file = original<FILE*(const char*, const char*)>("fopen")(path, mode);
  if (file != nullptr) opened(fileno(file), path);
  return file;
}

#define FOVEA_ON_FILE(RESULT, NAME, CALL, PARAMETERS, ARGUMENTS)                           \
  RESULT NAME PARAMETERS {                                                                 \
    char file[256];                                                                        \
    if (is_watched(fd) && armed && fails(CALL, name_of(fd, file, sizeof file))) return -1; \
    return original<RESULT PARAMETERS>(#NAME) ARGUMENTS;                                   \
  }
FOVEA_ON_FILE(ssize_t, write, "write", (int fd, const void* bytes, size_t n), (fd, bytes, n))
FOVEA_ON_FILE(ssize_t, writev, "write", (int fd, const struct iovec* parts, int n), (fd, parts, n))
FOVEA_ON_FILE(ssize_t, read, "read", (int fd, void* bytes, size_t n), (fd, bytes, n))
FOVEA_ON_FILE(int, fsync, "fsync", (int fd), (fd))
FOVEA_ON_FILE(int, fdatasync, "fsync", (int fd), (fd))
#undef FOVEA_ON_FILE

int close(int fd) {
  char file[256];
  const bool users = fd > 2 && is_watched(fd);
  if (users && armed && fails("close", name_of(fd, file, sizeof file))) {
    watch(fd, false);
    const int error = errno;
    original<int(int)>("close")(fd);  // as Linux does: the descriptor is gone whatever it says
    errno = error;
    return -1;
  }
  watch(fd, false);
  return original<int(int)>("close")(fd);
}

// How a call of prefork.cc ends, which leaves out what atexit was given.
void _exit(int code) {
  if (counting) report_counts();
  for (;;) syscall(SYS_exit_group, code);
}

int rename(const char* from, const char* to) {
  if (fails("rename", to)) return -1;
  return original<int(const char*, const char*)>("rename")(from, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  if (fails("rename", to)) return -1;
  return original<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_at, from,
                                                                                  to_at, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  if (is_users(path) && fails("create", path)) return -1;
  return original<int(const char*, mode_t)>("mkdir")(path, mode);
}
int unlink(const char* path) {
  if (is_users(path) && fails("unlink", path)) return -1;
  return original<int(const char*)>("unlink")(path);
}
// How std::filesystem removes one, and how a tree: by its name within a folder that is open.
int remove(const char* path) {
  if (is_users(path) && fails("unlink", path)) return -1;
  return original<int(const char*)>("remove")(path);
}
int unlinkat(int at, const char* path, int flags) {
  char file[520];
  if (is_users(within(at, path, file)) && fails("unlink", file)) return -1;
  return original<int(int, const char*, int)>("unlinkat")(at, path, flags);
}

void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (asks_for("mmap") && is_ours(__builtin_return_address(0)) && fails("mmap", ""))
    return MAP_FAILED;
  return original<void*(void*, size_t, int, int, int, off_t)>("mmap")(address, length, protection,
                                                                      flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (asks_for("thread") && is_ours_asking() && fails("thread", "")) return EAGAIN;
  return original<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
      "pthread_create")(thread, attributes, start, argument);
}

}  // extern "C"

// What our own code allocates; a std::vector of ours calls it directly.
void* operator new(size_t size) {
  if (asks_for("memory") && is_ours(__builtin_return_address(0)) && fails("memory", ""))
    throw std::bad_alloc();
  if (void* memory = malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
