// Who calls: which addresses are our own code, and from which stack of callers in it a call comes.
#pragma once

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <string.h>

#include <cstdint>
#include <iterator>
#include <mutex>

namespace {

// Our own code, the command and its libraries: where it lies, found once, because every allocation
// asks.
struct Place {
  const char *begin, *end;
};
Place ours[64];
size_t ours_count = 0;

int note_ours(dl_phdr_info* info, size_t, void*) {
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* name = slash == nullptr ? info->dlpi_name : slash + 1;
  // The first has no name: it is the command.
  if (info->dlpi_name[0] != '\0' && strncmp(name, "libfovea", 8) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || ours_count == std::size(ours))
      continue;
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    ours[ours_count++] = {begin, begin + part.p_memsz};
  }
  return 0;
}

// Where it lies in our code, the same number in every process; 0 for other code.
uint64_t place_in_ours(const void* address) {
  const char* at = static_cast<const char*>(address);
  for (size_t i = 0; i < ours_count; ++i)
    if (at >= ours[i].begin && at < ours[i].end)
      return (i + 1) << 48 | static_cast<uint64_t>(at - ours[i].begin);
  return 0;
}
bool is_ours(const void* address) { return place_in_ours(address) != 0; }

// The first caller that is not the C++ library's.
bool is_ours_asking() {
  void* frames[12];
  const int count = backtrace(frames, 12);
  for (int i = 2; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && strstr(info.dli_fname, "libstdc++") == nullptr)
      return is_ours(frames[i]);
  }
  return false;
}

// Callers in our code, and which calls of a kind came from them.
struct Site {
  uint64_t callers;
  size_t kind;
  long first, last;  // counted from 1
};
Site sites[1 << 15];  // by their hash
std::mutex sites_lock;

// Of the innermost `depth` callers.
uint64_t callers_in_ours(int depth) {
  void* frames[96];
  const int count = backtrace(frames, std::size(frames));
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (int i = 0; i < count && depth > 0; ++i) {
    const uint64_t place = place_in_ours(frames[i]);
    if (place == 0) continue;
    hash = (hash ^ place) * 1099511628211ull;
    --depth;
  }
  return hash;
}

void note_site(size_t kind, long number, int depth) {
  const uint64_t callers = callers_in_ours(depth);
  const std::lock_guard<std::mutex> held(sites_lock);
  for (size_t n = 0; n < std::size(sites); ++n) {
    Site& site = sites[(callers + kind + n) % std::size(sites)];
    if (site.first == 0) site = {callers, kind, number, number};
    if (site.callers != callers || site.kind != kind) continue;
    site.last = number;
    return;
  }
}

}  // namespace
