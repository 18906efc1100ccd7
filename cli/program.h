// Where main.cc enters the library that is the command.
#pragma once

extern "C" __attribute__((visibility("default"))) int fovea_program(int argc, char** argv);
