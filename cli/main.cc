#include <iostream>

#include "cli/command.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  using namespace fovea::cli;
  return run({.verbs = verbs(), .version = version, .out = std::cout, .err = std::cerr}, argc, argv);
}
