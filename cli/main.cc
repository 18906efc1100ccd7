#include <iostream>

#include "cli/command.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  using namespace fovea::cli;
  std::ios::sync_with_stdio(
      false);  // std::cin then knows how much has arrived, and lines are answered in batches
  return run({.verbs = verbs(), .version = version, .out = std::cout, .err = std::cerr}, argc,
             argv);
}
