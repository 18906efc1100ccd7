#include <iostream>

#include "cli/command.h"
#include "cli/standard_streams.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  using namespace fovea::cli;
  std::ios::sync_with_stdio(false);
  const StandardStreams streams;
  return run({.verbs = verbs(), .version = version, .out = std::cout, .err = std::cerr}, argc,
             argv);
}
