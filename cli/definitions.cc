#include "cli/definitions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

namespace fovea::cli {
namespace {

constexpr const char* kOfSystems = "train|generate|list";

std::vector<std::string> flags_of(const VerbDefinition& verb) {
  std::vector<std::string> names;
  for (const OptionDefinition& option : verb.options)
    if (option.name.starts_with("--")) names.push_back(option.name);
  names.emplace_back("--help");
  return names;
}

// A string in single quotes for a shell.
std::string quoted(const std::string& text) {
  return "'" + CLI::detail::find_and_replace(text, "'", "'\\''") + "'";
}

std::string roff(std::string text) {
  text = CLI::detail::find_and_replace(text, "\\", "\\e");
  text = CLI::detail::find_and_replace(text, "-", "\\-");
  // A line that starts with a full stop or an apostrophe would be a roff request.
  if (text.starts_with(".") || text.starts_with("'")) text.insert(0, "\\&");
  return text;
}

}  // namespace

std::vector<VerbDefinition> definitions(const std::vector<Verb>& verbs) {
  std::vector<VerbDefinition> out;
  for (const Verb& verb : verbs) {
    CLI::App app(verb.summary, verb.name);
    verb.declare(app);
    VerbDefinition& defined = out.emplace_back();
    defined.name = verb.name;
    defined.summary = verb.summary;
    defined.example = verb.example;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_lnames() == std::vector<std::string>{"help"}) continue;
      defined.options.push_back(
          {.name =
               option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames()[0],
           .value = option->get_items_expected_max() == 0 ? "" : option->get_type_name(),
           .help = option->get_description()});
    }
  }
  return out;
}

std::string bash_completion(const std::vector<VerbDefinition>& verbs,
                            const std::vector<std::string>& systems) {
  std::string names, cases;
  for (const VerbDefinition& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, fmt::join(flags_of(verb), " "));
  }
  return fmt::format(
      R"(# fovea completion bash: put `source <(fovea completion bash)` into ~/.bashrc
_fovea() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  if [ "$COMP_CWORD" -eq 2 ] && [[ "$word" != -* ]]; then
    case "$verb" in
      {}) COMPREPLY=($(compgen -W "{}" -- "$word")); return ;;
    esac
  fi
  case "$verb" in
{}  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _fovea fovea
)",
      names, kOfSystems, fmt::join(systems, " "), cases);
}

std::string zsh_completion(const std::vector<VerbDefinition>& verbs,
                           const std::vector<std::string>& systems) {
  std::string names, cases;
  for (const VerbDefinition& verb : verbs) {
    names += " " + quoted(verb.name + ":" + verb.summary);
    cases += fmt::format("    {}) options=({}) ;;\n", verb.name, fmt::join(flags_of(verb), " "));
  }
  return fmt::format(
      R"(#compdef fovea
# fovea completion zsh: write it to a file _fovea in a folder of $fpath
_fovea() {{
  local -a verbs options systems
  verbs=({})
  systems=({})
  if (( CURRENT == 2 )); then _describe verb verbs; return; fi
  if (( CURRENT == 3 )) && [[ $PREFIX != -* ]]; then
    case $words[2] in {}) compadd -a systems; return ;; esac
  fi
  case $words[2] in
{}  esac
  if [[ $PREFIX == -* ]]; then compadd -a options; else _files; fi
}}
compdef _fovea fovea
)",
      names, fmt::join(systems, " "), kOfSystems, cases);
}

std::string fish_completion(const std::vector<VerbDefinition>& verbs,
                            const std::vector<std::string>& systems) {
  std::string out = "# fovea completion fish: write it to ~/.config/fish/completions/fovea.fish\n";
  for (const VerbDefinition& verb : verbs) {
    out += fmt::format("complete -c fovea -n __fish_use_subcommand -f -a {} -d {}\n", verb.name,
                       quoted(verb.summary));
    for (const OptionDefinition& option : verb.options)
      if (option.name.starts_with("--"))
        out += fmt::format("complete -c fovea -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                           verb.name, option.name.substr(2), option.value.empty() ? "" : " -r",
                           quoted(option.help));
  }
  for (const char* verb : {"train", "generate", "list"})
    out += fmt::format("complete -c fovea -n '__fish_seen_subcommand_from {}' -f -a '{}'\n", verb,
                       fmt::join(systems, " "));
  return out;
}

std::string manual_page(const std::vector<VerbDefinition>& verbs, const std::string& version) {
  std::string out = fmt::format(
      ".TH FOVEA 1 \"\" \"Fovea {}\"\n.SH NAME\nfovea \\- attention systems: train, evaluate, use, "
      "explain\n.SH SYNOPSIS\n.B fovea\n.I VERB\n[options]\n.SH VERBS\n",
      roff(version));
  for (const VerbDefinition& verb : verbs) {
    out += fmt::format(".SS {}\n{}\n", roff(verb.name), roff(verb.summary));
    for (const OptionDefinition& option : verb.options)
      out += fmt::format(".TP\n\\fB{}\\fR \\fI{}\\fR\n{}\n", roff(option.name), roff(option.value),
                         roff(option.help));
    out += ".PP\nExample:\n.nf\n";
    for (const std::string& line : CLI::detail::split(verb.example, '\n'))
      out += "  " + roff(line) + "\n";
    out += ".fi\n";
  }
  return out +
         ".SH EXIT STATUS\n0: done. 1: it failed, and one line says why. 2: the command line is "
         "wrong.\n";
}

}  // namespace fovea::cli
