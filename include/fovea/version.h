// The version. It is written only here: CMake, the Python package and the command read it.
#pragma once

#define FOVEA_VERSION_MAJOR 0
#define FOVEA_VERSION_MINOR 1
#define FOVEA_VERSION_PATCH 0

// "0.1.0"
#define FOVEA_VERSION \
  FOVEA_VERSION_TEXT(FOVEA_VERSION_MAJOR, FOVEA_VERSION_MINOR, FOVEA_VERSION_PATCH)

#define FOVEA_VERSION_TEXT(major, minor, patch) FOVEA_VERSION_QUOTED(major, minor, patch)
#define FOVEA_VERSION_QUOTED(major, minor, patch) #major "." #minor "." #patch
