// fovea attend: attention applied to arrays in files.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/suggest.h"
#include "cli/tensor_files.h"
#include "cli/verbs/verbs.h"
#include "data/files/json_text.h"
#include "fovea/attend.h"
#include "torch/engine_call.h"
#include "torch/spec.h"

namespace fovea::cli {
namespace {

struct AttendOptions {
  std::string query, key, value, out;
  std::string score = "dot", normaliser = "softmax", structure = "dense";
  std::string key_lengths, query_offset, weights;
  std::optional<double> scale;
  double dropout_p = 0;
  std::optional<uint64_t> seed;
  bool strict = false, explain = false, json = false, check_finite = false;
};

// Whether a kind can be written as a name with fields. (Functions cannot, and structures made of parts
// have signs of their own.)
template <class Kind>
constexpr bool kHasName = !choice::HasParts<Kind> && !std::is_same_v<Kind, Custom>;

// "dot, bilinear, …"
template <class Kinds>
std::string names_of() {
  return []<class... Kind>(const std::variant<Kind...>*) {
    std::vector<std::string> names;
    ((kHasName<Kind> ? names.push_back(Kind::kName) : void()), ...);
    return fmt::format("{}", fmt::join(names, ", "));
  }(static_cast<const Kinds*>(nullptr));
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses the text of a choice. A tensor is the name of a file, or a number where one is enough (a
// bandwidth). The message about a misspelt name has the option and the nearest name.
template <class Parse>
auto parse_choice(const char* option, const std::string& text, const Parse& parse,
                  at::ScalarType type) {
  const Resolve resolve = [&](std::string_view field, std::string_view given) {
    if (given.empty())
      throw UsageError(std::string(option) + ": " + std::string(field) + " has no file");
    if (const auto number = number_in(given)) return at::full({1}, *number, type);
    return read_tensor(std::string(given));
  };
  try {
    return parse(text, resolve);
  } catch (const UnknownName& error) {
    throw UsageError(std::string(option) + ": " + unknown(error.kind, error.typed, error.names));
  } catch (const InvalidArgument& error) {
    throw UsageError(std::string(option) + ": " + error.what());
  }
}

// A whole number, or a file of them.
PerItem offset_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  if (number_in(text))
    throw UsageError("--query-offset: '" + text + "', expected a whole number or a file");
  return read_tensor(text);
}

int run(const AttendOptions& given) {
  const at::Tensor query = read_tensor(given.query), key = read_tensor(given.key),
                   value = read_tensor(given.value);
  const auto type = arithmetic_type(query);
  const Choices choices{parse_choice("--score", given.score, parse_score, type),
                        parse_choice("--normaliser", given.normaliser, parse_normaliser, type),
                        parse_choice("--structure", given.structure, parse_structure, type)};
  Options options{.scale = given.scale,
                  .dropout_p = given.dropout_p,
                  .key_lengths = {},
                  .seed = given.seed,
                  .strict = given.strict};
  if (!given.key_lengths.empty()) options.key_lengths = read_tensor(given.key_lengths);
  if (!given.query_offset.empty()) options.query_offset = offset_in(given.query_offset);
  options.check_finite = given.check_finite;
  if (given.explain) std::cerr << explain_dispatch(query, key, value, choices, options) << '\n';

  const Attended result = attend_full(query, key, value, choices, options);
  write_tensor(given.out, "output", result.output);
  if (!given.weights.empty())
    write_tensor(given.weights, "weights", weights(query, key, choices, {}, options).weights);
  if (given.json) {
    const nlohmann::ordered_json said = {{"out", given.out},
                                         {"shape", result.output.sizes().vec()},
                                         {"empty_rows", result.empty_rows}};
    std::cout << data::json_text(said) << '\n';
  } else if (result.empty_rows > 0) {
    std::cerr << "fovea attend: " << result.empty_rows
              << " queries saw no key; their output is zero\n";
  }
  return kDone;
}

}  // namespace

Verb attend_verb() {
  return {"attend", "attention on arrays in .npy or .safetensors files",
          "fovea attend --query q.npy --key k.npy --value v.npy --out o.npy\n"
          "fovea attend --query q.npy --key k.npy --value v.npy --score "
          "additive:weight=w.npy,activation=tanh "
          "--normaliser entmax:alpha=1.5 --structure 'causal&window:left=8' --out o.npy",
          [](CLI::App& app) {
            auto options = std::make_shared<AttendOptions>();
            app.add_option("--query", options->query,
                           "queries, [B, H, L, E] (batch items, heads, rows, width): FILE.npy, or "
                           "FILE.safetensors:NAME")
                ->required();
            app.add_option("--key", options->key, "keys, [B, Hkv, S, E]: H is a multiple of Hkv")
                ->required();
            app.add_option("--value", options->value, "values, [B, Hkv, S, Ev]")->required();
            app.add_option("--out", options->out, "file for the result: .npy or .safetensors")
                ->required();
            app.add_option("--score", options->score,
                           "NAME[:FIELD=VALUE,...]: " + names_of<Score::Kind>() +
                               "; a modifier after each |: " + names_of<Modifier>());
            app.add_option("--normaliser", options->normaliser,
                           "NAME[:FIELD=VALUE,...]: " + names_of<Normaliser>());
            app.add_option(
                "--structure", options->structure,
                "NAME[:FIELD=VALUE,...]: " + names_of<choice::StructureKind<at::Tensor>>() +
                    "; a & b: both, a | b: either, ~a: not, with brackets");
            app.add_option(
                "--scale", options->scale,
                "scale of a dot or bilinear score; default: 1/sqrt(E) for dot, 1 for bilinear");
            app.add_option("--key-lengths", options->key_lengths,
                           "file with the number of keys of each batch item: integers [B]");
            app.add_option(
                "--query-offset", options->query_offset,
                "position of the first query among the keys: a number, or a file of integers [B]");
            app.add_option("--dropout", options->dropout_p,
                           "probability of dropping a weight; default: 0");
            app.add_option("--seed", options->seed, "seed of dropout and sampling");
            app.add_option("--weights", options->weights,
                           "also write all weights, [B, H, L, S], to this file");
            app.add_flag("--check-finite", options->check_finite,
                         "fail if a score is NaN or +infinity, instead of writing a row of NaN");
            app.add_flag("--strict", options->strict,
                         "fail instead of taking a path that is not fused");
            app.add_flag("--explain", options->explain,
                         "print on standard error which path is taken, and why");
            app.add_flag("--json", options->json, "print one JSON object");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
