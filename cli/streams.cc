#include "cli/streams.h"

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

}  // namespace fovea::cli
