// train_example FOLDER [EPOCHS]: trains the example system into the folder, going on with what is
// there; saves before every step.
#include <cstdio>
#include <exception>
#include <string>

#include "systems/run/session.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    fovea::train::Progress silent(fovea::train::Progress::Style::kSilent);
    fovea::systems::train(
        {.system = "marked-item",
         .set = {argc > 2 ? std::string("epochs=") + argv[2] : "epochs=4", "batch=64"},
         .threads = 1,
         .out = argv[1],
         .resume = true,
         .save_every_seconds = 0},
        silent);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
