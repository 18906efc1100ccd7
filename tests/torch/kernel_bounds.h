// What the kernels of a program take of a device, as the compiler reports it, and the table that bounds
// it, kernel_resources.tsv.
#pragma once

#include <map>
#include <string>

#include "tests/torch/case_programs.h"

namespace fovea {

struct Taken {
  int registers = 0;  // of a thread
  int shared = 0;     // bytes of a block, with what is given to it at its launch
  int spilled = 0;    // bytes of a thread
};

// The most that a row's programs may take.
class KernelBounds {
 public:
  KernelBounds();  // reads the table

  // Compiles the program for the architecture and compares; each difference is a failure by name.
  void check(const CaseProgram& one, const std::string& architecture);
  // What was seen, as a table, where FOVEA_KERNEL_TABLE names a file.
  void write() const;
  int compiled() const { return compiled_; }

 private:
  std::map<std::string, Taken> bounds_, seen_;
  int compiled_ = 0;
  bool is_of_this_version_ = false;
};

}  // namespace fovea
