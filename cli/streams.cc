#include "cli/streams.h"

#include <filesystem>

#include "data/file.h"
#include "train/run_folder.h"

namespace fovea::cli {

InputFile::InputFile(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  if (path != "-") text_.str(data::read_file(path));
}

void OutputFile::finish() {
  if (path_ != "-")
    train::write_whole(path_, text_.str());
  else
    std::cout.flush();
}

void say_which(const systems::Run& opened, const std::string& asked) {
  const std::string member = opened.folder.filename().string();
  if (opened.folder != std::filesystem::path(asked))
    std::cerr << "fovea: " << asked << " has several runs; " << member << " answers" << std::endl;
}

}  // namespace fovea::cli
