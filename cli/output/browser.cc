#include "cli/output/browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "data/files/file.h"
#include "io/write.h"
#include "fovea/error.h"

extern char** environ;

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

// The first of these programs that is installed, or an empty text.
std::string chromium() {
  if (const char* named = std::getenv("FOVEA_CHROMIUM"); named && *named) return named;
  const char* path = std::getenv("PATH");
  const std::string_view folders = path ? path : "";
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"})
    for (size_t from = 0; from < folders.size();) {
      const size_t end = std::min(folders.find(':', from), folders.size());
      const std::string program = std::string(folders.substr(from, end - from)) + "/" + name;
      if (access(program.c_str(), X_OK) == 0) return program;
      from = end + 1;
    }
  return "";
}

// A temporary folder, removed with the object.
struct Workplace {
  Workplace() {
    std::string name = (fs::temp_directory_path() / "fovea-png-XXXXXX").string();
    if (!mkdtemp(name.data())) throw InvalidArgument(name + ": cannot be created");
    path = name;
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  fs::path path;
};

// The number after `name="` in a document that `drawing::document` wrote.
std::string attribute(const std::string& svg, const std::string& name) {
  const size_t from = svg.find(" " + name + "=\"") + name.size() + 3;
  return svg.substr(from, svg.find('"', from) - from);
}

int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quietly;
  posix_spawn_file_actions_init(&quietly);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quietly, stream, "/dev/null", O_RDWR, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &quietly, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quietly);
  if (failed) return 127;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void write_png(const std::string& svg, const std::string& path) {
  const std::string program = chromium();
  if (program.empty())
    throw InvalidArgument(
        fmt::format("--out {}: a PNG file is drawn by Chromium, and none is on the search path: "
                    "install it, name "
                    "it in FOVEA_CHROMIUM, or write .svg, which needs none",
                    path));
  const Workplace work;
  const std::string drawn = (work.path / "picture.png").string();
  io::write_file(work.path / "picture.html",
                 "<!doctype html><meta charset=utf-8><style>body{margin:0}svg{display:block}"
                 "</style>" +
                     svg);
  std::vector<std::string> words = {
      program, "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
      "--hide-scrollbars", "--force-device-scale-factor=2",
      "--user-data-dir=" + (work.path / "profile").string(), "--screenshot=" + drawn,
      // Chromium's window has a minimum size; the background is white there too.
      fmt::format("--window-size={},{}", attribute(svg, "width"), attribute(svg, "height"))};
  if (geteuid() == 0) words.push_back("--no-sandbox");  // Chromium has no sandbox for root
  words.push_back("file://" + (work.path / "picture.html").string());
  const int code = run(words);
  if (code != 0 || !fs::exists(drawn))
    throw InvalidArgument(
        fmt::format("--out {}: {} drew no picture (it ended with code {}); .svg needs no browser",
                    path, program, code));
  io::write_file(path, data::read_file(drawn));
}

}  // namespace fovea::cli
