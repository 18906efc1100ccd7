// The programs that the case table asks for: each combination of a score or a modifier with a normaliser
// and a structure, and the shapes that have drivers of their own. Many combinations share a program,
// because lengths and numbers are no part of its text.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/torch/against_reference.h"
#include "torch/cuda/fused.h"

namespace fovea {

struct CaseProgram {
  std::string what;  // the first combination that asks for it, and which pass of it
  std::string
      kind;  // with the type and the architecture: the row of kernel_resources.tsv that bounds it
  cuda::Program program;
};

// Rows of the tables by name, 32 columns; no modifier where its name is empty.
Case case_of_rows(const std::string& score, const std::string& modifier,
                  const std::string& normaliser, const std::string& structure);

// Every combination for an architecture: the types of operands take turns. No device is needed.
std::vector<CaseProgram> programs_of_cases(const std::string& architecture);

// A combination and what decides on other drivers: few dimensions, few queries, dropout.
std::vector<Case> shapes_of(const Case& c);

// Of one: forward, backward, and backward with the gradient of a bias where it has one. None where it
// has no meaning or the kernels decline it.
std::vector<CaseProgram> programs_of_case(const Case& c, at::ScalarType type,
                                          const std::string& architecture);

}  // namespace fovea
