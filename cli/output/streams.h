// `--input FILE|-` and `--output FILE|-`.
#pragma once

#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "cli/output/standard_streams.h"
#include "data/files/file.h"
#include "io/write.h"
#include "systems/run/session.h"
#include "train/types.h"

namespace fovea::cli {

// "-" is standard input; a file may be gzipped; a folder stands for the line that names it.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  Input input() { return {stream(), name_}; }
  // UsageError where it is a folder of which nothing was read: the system took its name for a text.
  void check_read() const;

 private:
  std::istream& stream() { return name_ == "standard input" ? std::cin : text_; }

  std::string name_;
  std::istringstream text_;
  std::optional<data::ReadLog> folder_;
};

// "-" is standard output; a file appears under its name when it is complete (io::FileWriter).
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  std::ostream& stream() { return buffer_ ? file_ : std::cout; }
  void finish();

 private:
  std::optional<io::FileWriter> writer_;
  std::optional<OutputBuffer> buffer_;
  std::ostream file_{nullptr};
};

// Tells the reader, on standard error, which of a RUN's several seeds or folds was opened.
void say_which(const systems::Run& opened, const std::string& asked);

}  // namespace fovea::cli
