#include "cli/output/streams.h"

#include <fmt/format.h>

#include <filesystem>

#include "train/usage_error.h"

namespace fovea::cli {

InputFile::InputFile(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  // A folder counts as one line with its name: where items are folders, `--input FOLDER` is one item.
  if (path == "-") return;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    text_.str(path + "\n");
    folder_.emplace();
  } else {
    text_.str(data::read_file(path));
  }
}

void InputFile::check_read() const {
  if (folder_ && folder_->sha256().empty())
    throw UsageError(fmt::format(
        "--input {}: a folder of which nothing was read; expected a file of items", name_));
}

OutputFile::OutputFile(const std::string& path) {
  if (path == "-") return;
  writer_.emplace(path);
  buffer_.emplace([this](std::string_view text) { writer_->write(text); });
  file_.rdbuf(&*buffer_);
  file_.exceptions(std::ios::badbit);
}

void OutputFile::finish() {
  stream().flush();
  if (writer_) writer_->finish();
}

void say_which(const systems::Run& opened, const std::string& asked) {
  const std::string member = opened.folder->path().filename().string();
  if (opened.folder->path() != std::filesystem::path(asked))
    std::cerr << "fovea: " << asked << " has several runs; " << member << " answers" << std::endl;
}

}  // namespace fovea::cli
