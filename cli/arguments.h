// Options whose values are read strictly: a whole number must have decimal digits and be in its
// range, a path must not be empty or the next option. CLI11 alone would accept 010 as 8, -1 as
// 2^64 - 1 and "" as 0.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

namespace fovea::cli {

// A whole number from `least` to `most`.
CLI::Option* add_integer(CLI::App& app, const std::string& name,
                         const std::function<void(int64_t)>& store, int64_t least, int64_t most,
                         const std::string& help);
// A whole number from 0 to 2^64 - 1.
CLI::Option* add_seed(CLI::App& app, const std::string& name, uint64_t& value,
                      const std::string& help);
// A finite number from `least` to `most`.
CLI::Option* add_number(CLI::App& app, const std::string& name, double& value, double least,
                        double most, const std::string& help);
CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& help);

// --threads, --device and --set, which several verbs have.
void add_threads(CLI::App& app, int& threads,
                 const std::string& help = "number of threads; 0: all of the machine");
void add_device(CLI::App& app, std::string& device);
void add_settings(CLI::App& app, std::vector<std::string>& set, const std::string& help);

}  // namespace fovea::cli
