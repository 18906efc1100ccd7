#include "tests/torch/emulated_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

namespace fovea::cuda {
namespace {

// A folder that goes with the process.
const std::filesystem::path& folder() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("fovea-emulated-" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.path;
}

// Runs the compiler with these arguments; `what` is for the message.
void compile_for_host(const std::string& arguments, const std::string& what) {
  const std::string command =
      std::string(FOVEA_CXX) + " -std=c++20 -O0 -w -fPIC -I " + FOVEA_SOURCE + " " + arguments;
  if (std::system(command.c_str()) != 0) throw std::runtime_error("not compiled: " + what);
}

// What every program includes first, compiled once for the process.
const std::string& first_header() {
  static const std::string name = [] {
    const std::string header = (folder() / "first.h").string();
    std::ofstream(header) << "#include \"tests/torch/emulated/cuda.h\"\n";
    compile_for_host("-x c++-header " + header + " -o " + header + ".gch", header);
    return header;
  }();
  return name;
}

void* library_of(const std::string& text) {
  static std::map<std::string, void*> loaded;
  if (const auto found = loaded.find(text); found != loaded.end()) return found->second;
  const auto name = folder() / ("program" + std::to_string(loaded.size()));
  std::ofstream source(name.string() + ".cc");
  source << text << "#include \"tests/torch/emulated/run.h\"\n";
  for (const char* kernel : {"fovea_forward", "fovea_merge", "fovea_gradient_query",
                             "fovea_gradient_key", "fovea_gradient_bias"}) {
    const std::string_view name = kernel;
    const auto has = [&](const char* driver) { return text.find(driver) != text.npos; };
    const bool is_forward = has("forward.h") || has("decode.h");
    if ((name == "fovea_forward" && !is_forward) ||
        (name == "fovea_merge" && !has("decode.h") && !has("points_forward.h") &&
         !has("drivers/tiles/merge.h")) ||
        (name.starts_with("fovea_gradient") && is_forward) ||
        (name == "fovea_gradient_bias" && !has("backward_bias.h")))
      continue;
    source << "extern \"C\" void run_" << kernel
           << "(unsigned blocks, unsigned chunks, unsigned threads, const fovea::cuda::Arguments* "
              "a) {\n"
              "  emulated::run(emulated::body<"
           << kernel << ">, blocks, chunks, threads, a);\n}\n";
  }
  source.close();
  compile_for_host("-shared -include " + first_header() + " " + name.string() + ".cc -o " +
                       name.string() + ".so",
                   text);
  void* library = dlopen((name.string() + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  loaded.emplace(text, library);
  return library;
}

}  // namespace

void EmulatedDevice::launch(const Program& program, const char* kernel, unsigned blocks,
                            unsigned chunks, const Arguments& arguments) {
  using Run = void(unsigned, unsigned, unsigned, const Arguments*);
  auto* run = reinterpret_cast<Run*>(
      dlsym(library_of(program.text), (std::string("run_") + kernel).c_str()));
  if (!run) throw std::runtime_error(dlerror());
  run(blocks, chunks, program.threads, &arguments);
}

}  // namespace fovea::cuda
