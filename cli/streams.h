// `--input FILE|-` and `--output FILE|-`.
#pragma once

#include <iostream>
#include <sstream>
#include <string>

#include "systems/session.h"
#include "train/types.h"

namespace fovea::cli {

// "-" is standard input; a file may be gzipped.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  Input input() { return {stream(), name_}; }

 private:
  std::istream& stream() { return name_ == "standard input" ? std::cin : text_; }

  std::string name_;
  std::istringstream text_;
};

// "-" is standard output; a file appears under its name when it is complete.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  std::ostream& stream() { return path_ == "-" ? std::cout : text_; }
  void finish();

 private:
  std::string path_;
  std::ostringstream text_;
};

// Tells the reader, on standard error, which of a RUN's several seeds or folds was opened.
void say_which(const systems::Run& opened, const std::string& asked);

}  // namespace fovea::cli
