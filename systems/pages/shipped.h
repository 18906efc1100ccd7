// Runs that come with the program: small ones that take too long for a tour to train. `scripts/tour-runs`
// trains them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::systems {

struct ShippedFile {
  std::string_view run;   // the system's name
  std::string_view name;  // within the RUN
  std::string_view bytes;
};

// Whether the program has a trained run of the system.
bool is_shipped(const std::string& system);
// Writes it as the RUN `out`; what was a RUN there is replaced.
void unpack_shipped(const std::string& system, const std::filesystem::path& out);

}  // namespace fovea::systems
