#include "train/ranks/place.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "train/usage_error.h"

namespace fovea::train {
namespace {

constexpr int kMostRanks = 65'536, kMostPorts = 65'535, kDefaultPort = 29'500;

std::optional<std::string> value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

int number_in(const char* name, const std::string& text, int least, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    throw UsageError(
        fmt::format("{}={}: expected a whole number from {} to {}", name, text, least, most));
  return number;
}

int needed(const char* name, int least, int most) {
  const auto text = value_of(name);
  if (!text) throw UsageError(fmt::format("{}: not set, expected it of the launcher", name));
  return number_in(name, *text, least, most);
}

// The variables of a launcher: rank, number of ranks, and how it says that all are on one machine.
struct Launcher {
  const char *rank, *size, *local;  // `local`: the number of ranks on this machine, or of machines
  bool counts_machines;
};
constexpr Launcher kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", false};
// Open MPI; MPICH and Intel MPI; srun. Slurm sets SLURM_PROCID in a batch script too, which is one
// process: SLURM_STEP_NUM_TASKS is srun's own.
constexpr Launcher kOthers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", false},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", false},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", true},
};

const Launcher* launcher() {
  if (value_of(kTorchrun.rank) && value_of(kTorchrun.size)) return &kTorchrun;
  for (const Launcher& one : kOthers)
    if (value_of(one.rank) && value_of(one.size)) return &one;
  return nullptr;
}

bool on_one_machine(const Launcher& by, int size) {
  const auto local = value_of(by.local);
  return local && *local == (by.counts_machines ? "1" : std::to_string(size));
}

}  // namespace

std::optional<Place> place_in_environment() {
  const Launcher* const by = launcher();
  if (!by) return std::nullopt;
  Place place;
  place.size = needed(by->size, 1, kMostRanks);
  place.rank = needed(by->rank, 0, place.size - 1);
  if (place.size == 1) return place;
  const auto address = value_of("MASTER_ADDR");
  if (!address && !on_one_machine(*by, place.size))
    throw UsageError(
        fmt::format("MASTER_ADDR: not set, expected the address of rank 0's machine ({} is {})",
                    by->size, place.size));
  place.address = address.value_or("127.0.0.1");
  const auto port = value_of("MASTER_PORT");
  place.port = port ? number_in("MASTER_PORT", *port, 1, kMostPorts) : kDefaultPort;
  place.store_is_launchers = value_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (value_of("TORCHELASTIC_RESTART_COUNT"))
    place.restarts = needed("TORCHELASTIC_RESTART_COUNT", 0, 1'000'000);
  return place;
}

}  // namespace fovea::train
