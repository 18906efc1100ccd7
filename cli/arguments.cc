#include "cli/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/verbs/verbs.h"

namespace fovea::cli {
namespace {

// Decimal digits only, without a leading zero.
template <class Number>
bool read_whole(const std::string& text, Number& value) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.size() > sign + 1 && text[sign] == '0') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void refuse(const std::string& name, const std::string& text,
                         const std::string& expected) {
  throw UsageError(fmt::format("{} {}: expected {}", name, text.empty() ? "''" : text, expected));
}

CLI::Option* add_text(CLI::App& app, const std::string& name,
                      const std::function<void(const std::string&)>& take, const std::string& help,
                      const std::string& type) {
  return app.add_option_function<std::string>(name, take, help)->type_name(type);
}

}  // namespace

CLI::Option* add_integer(CLI::App& app, const std::string& name,
                         const std::function<void(int64_t)>& store, int64_t least, int64_t most,
                         const std::string& help) {
  return add_text(
      app, name,
      [=](const std::string& text) {
        int64_t value = 0;
        if (!read_whole(text, value) || value < least || value > most)
          refuse(name, text, fmt::format("a whole number, {} to {}", least, most));
        store(value);
      },
      help, "N");
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, uint64_t& value,
                      const std::string& help) {
  return add_text(
      app, name,
      [name, &value](const std::string& text) {
        if (!read_whole(text, value)) refuse(name, text, "a whole number, 0 to 2^64 - 1");
      },
      help, "N");
}

CLI::Option* add_number(CLI::App& app, const std::string& name, double& value, double least,
                        double most, const std::string& help) {
  return add_text(
      app, name,
      [=, &value](const std::string& text) {
        double read = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
        if (error != std::errc() || end != text.data() + text.size() || !(read >= least) ||
            !(read <= most))
          refuse(name, text, fmt::format("a number, {} to {}", least, most));
        value = read;
      },
      help, "NUMBER");
}

CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& help) {
  return add_text(
      app, name,
      [name, &value](const std::string& text) {
        if (text.empty()) refuse(name, text, "a path");
        if (text.starts_with("--"))
          refuse(name, text, "a path, not an option (./" + text + " where a file has that name)");
        value = text;
      },
      help, "PATH");
}

void add_threads(CLI::App& app, int& threads, const std::string& help) {
  constexpr int64_t kMostThreads = 4096;
  add_integer(
      app, "--threads", [&threads](int64_t n) { threads = static_cast<int>(n); }, 0, kMostThreads,
      help);
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "where to compute: cpu (default), cuda or cuda:N");
}

void add_settings(CLI::App& app, std::vector<std::string>& set, const std::string& help) {
  app.add_option("--set", set, help)->allow_extra_args(false);
}

}  // namespace fovea::cli
