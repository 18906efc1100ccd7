// The function of the command's library that main.cc calls.
#pragma once

extern "C" __attribute__((visibility("default"))) int fovea_program(int argc, char** argv);
