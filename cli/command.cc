#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <ostream>

#include "cli/suggest.h"
#include "data/files/file.h"
#include "data/files/limits.h"
#include "train/failure.h"
#include "train/interrupt.h"
#include "train/ranks/rank_lost.h"

namespace fovea::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string without_value(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

// The message about arguments that `verb` does not have.
std::string unexpected(const CLI::App& verb) {
  const std::vector<std::string> extra = verb.remaining();
  for (const std::string& argument : extra) {
    if (argument.starts_with("--")) {
      return verb.get_name() + ": " +
             unknown("option", without_value(argument), option_names(verb));
    }
  }
  return verb.get_name() + ": '" + extra.front() + "' was not expected; see fovea " +
         verb.get_name() + " --help";
}

// For a misspelt verb, or an option before the verb, CLI11's message would only be that a
// subcommand is required.
void check_first(const CLI::App& app, const std::vector<std::string>& verbs, int argc,
                 const char* const* argv) {
  if (argc < 2) throw UsageError("which verb? fovea --help lists them");
  const std::string first = argv[1];
  if (first.starts_with("-")) {
    if (app.get_option_no_throw(without_value(first)) == nullptr) {
      throw UsageError(unknown("option", without_value(first), option_names(app)));
    }
  } else if (std::find(verbs.begin(), verbs.end(), first) == verbs.end()) {
    throw UsageError(unknown("verb", first, verbs));
  }
}

// Reads the limits of the environment before any file is read. A mistake in them is a usage error.
void read_limits() {
  try {
    data::limit(data::Limit::kFile);
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

std::string limits_help() {
  std::string text =
      "The environment variable FOVEA_LIMITS=name=number,… sets the limits on what is read and "
      "made:";
  size_t at = 0;
  for (const data::LimitInfo& info : data::all_limits()) {
    const auto which = static_cast<data::Limit>(at++);
    text += fmt::format("\n  {:<9} {}, {} {}", info.name, data::in_unit(which, data::limit(which)),
                        info.unit, info.what);
  }
  return text;
}

int parse_and_run(const Command& command, int argc, const char* const* argv) {
  read_limits();
  CLI::App app(
      "Attention: train, evaluate, use and explain attention systems; attention on arrays in "
      "files.",
      "fovea");
  app.add_flag("--version")
      ->description("print the versions of this build, its SIMD target and its devices");
  app.require_subcommand(0, 1);
  app.footer(
      "fovea VERB --help shows the options of a verb, with an example. A RUN is a folder that "
      "`fovea train` wrote.\n" +
      limits_help());

  std::vector<std::string> names;
  std::map<std::string, std::function<int()>> actions;
  for (const Verb& verb : command.verbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->footer("Example:\n  " + CLI::detail::find_and_replace(verb.example, "\n", "\n  "));
    actions[verb.name] = verb.declare(*sub);
    names.push_back(verb.name);
  }
  check_first(app, names, argc, argv);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help, command.out, command.err);
  } catch (const CLI::ParseError& error) {
    // A required option that is misspelt also counts as missing. The message about the spelling
    // helps more.
    for (const CLI::App* verb : app.get_subcommands()) {
      if (!verb->remaining().empty()) throw UsageError(unexpected(*verb));
    }
    throw UsageError(error.what());
  }
  if (app.get_subcommands().empty()) {
    command.out << command.version();
    return kDone;
  }
  return actions.at(app.get_subcommands().front()->get_name())();
}

// What was printed before a failure is flushed. If that fails too, the first failure is reported.
void flush_what_is_left(std::ostream& out) {
  try {
    out.flush();
  } catch (const std::exception&) {
  }
}

int fail(const Command& command, const std::exception& error, int code) {
  flush_what_is_left(command.out);
  // The name of a file may contain control sequences of a terminal.
  command.err << "fovea: " << data::visible(train::words_of(error)) << '\n';
  return code;
}

}  // namespace

int run(const Command& command, int argc, const char* const* argv) {
  try {
    const int code = parse_and_run(command, argc, argv);
    command.out.flush();  // throws if standard output cannot be written
    return code;
  } catch (const train::Interrupted& stop) {
    return fail(command, stop, 128 + stop.signal);  // as in a shell
  } catch (const UsageError& error) {
    return fail(command, error, kWrongUsage);
  } catch (const train::RankLost& error) {
    return fail(command, error, kRankLost);
  } catch (const std::exception& error) {
    return fail(command, error, kFailed);
  }
}

}  // namespace fovea::cli
