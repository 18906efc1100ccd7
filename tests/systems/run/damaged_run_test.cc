// Runs whose files were changed by another hand: each is refused by name when it is opened, and
// nothing is read outside of the run.
#include <torch/torch.h>

#include "io/sha256.h"
#include "systems/run/naming.h"
#include "tests/systems/run/runs.h"
#include "train/run/tensor_file.h"
#include "train/usage_error.h"

namespace fovea::systems {
namespace {

class DamagedRun : public test::Runs {
 protected:
  Json config(const std::string& name) const {
    std::ifstream file(base_ / name / "config.json");
    return Json::parse(file);
  }
  void write_config(const std::string& name, const Json& config) const {
    std::ofstream(base_ / name / "config.json") << config.dump();
    sign_again(name);
  }
  // Opens the run with one entry of its configuration changed.
  void expect_refused(const std::string& name, const std::string& pointer, const Json& value,
                      const std::string& part) {
    const Json good = config(name);
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    write_config(name, bad);
    expect_error(part, [&] { systems::open(base_ / name); });
    write_config(name, good);
    EXPECT_NO_THROW(systems::open(base_ / name));
  }
  template <class Call>
  static void expect_error(const std::string& part, Call&& call) {
    try {
      call();
      ADD_FAILURE() << "expected an error with: " << part;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
};

TEST_F(DamagedRun, FactsOfAnotherLengthOrType) {
  train("pool", {.system = "pooling", .set = {"bags=40", "epochs=0"}});
  expect_refused("pool", "/facts/deviation", Json::array(), "deviation: 0 numbers, expected 2");
  expect_refused("pool", "/facts/deviation", {1.0}, "deviation: 1 numbers, expected 2");
  expect_refused("pool", "/facts/mean", {0.0, "x"}, "facts.mean: expected a list of numbers");
  expect_refused("pool", "/facts/columns", {"a"}, "columns: 1 names, expected 2");
  expect_refused("pool", "/facts/inputs", -3, "facts.inputs: expected an integer, 1 to");
  expect_refused("pool", "/facts/inputs", "two", "facts.inputs: expected an integer, 1 to");

  train("curve", {.system = "nadaraya-watson", .set = {"grid=3"}});
  expect_refused("curve", "/facts/grid", {Json::array(), Json::array()}, "facts.grid: expected");
  expect_refused("curve", "/facts/grid", {{1, 2, 3}}, "facts.grid: expected");
  expect_refused("curve", "/facts/grid", {{1, 2, 3, 0}}, "points, not 1");
  expect_refused("curve", "/facts/grid", Json::array(), "points, not 0");
  expect_refused("curve", "/facts/grid", {{2, 2, 3, 0}, {1, 2, 3, 0}}, "ascending");
  expect_refused("curve", "/facts/columns", Json::array(), "facts.columns: expected");
  expect_refused("curve", "/facts/rows", nullptr, "facts.rows: expected an integer");
  expect_refused("curve", "/facts/rows", int64_t{1} << 62, "facts.rows: expected an integer, 1 to");
  expect_refused("curve", "/facts/single_loo_mse", nullptr, "expected a finite number");
}

TEST_F(DamagedRun, WhatEveryRunHas) {
  train("pool", {.system = "pooling", .set = {"bags=40", "epochs=0"}});
  expect_refused("pool", "/seed", "one", "config.json: seed: expected an integer");
  expect_refused("pool", "/data", 3, "config.json: data: expected text");
  expect_refused("pool", "/fold", 7, "config.json: fold: expected an integer, 0 to 0");
  expect_refused("pool", "/options", 3, "config.json: options: expected an object");
  expect_refused("pool", "/options/epochs", -1, "config.json: option epochs: expected");
  expect_refused("pool", "/options/nothing", 1, "config.json: ");
  expect_refused("pool", "/system", "x", "config.json: no system 'x'");
  expect_refused("pool", "/folds", int64_t{1} << 62,
                 "config.json: folds: expected an integer, 0 to");
  expect_refused("pool", "/data_sha256", "00", "config.json: data: expected a path");
  for (const char* name : {"../pool/config.json", "\x7fvocabulary"})
    expect_refused("pool", "/files", {name}, "not the name of a part of the run");
  std::ofstream(base_ / "pool/config.json") << std::string(100'000, '[');
  sign_again("pool");
  expect_error("nested deeper", [&] { systems::open(base_ / "pool"); });
}

TEST_F(DamagedRun, IsNamedWhereverTheDamageIsSeen) {
  // By its own fact; while the model is made; while items are generated; in its figures.
  train("machine", {.system = "ntm", .set = {"sequences=20", "epochs=0"}});
  expect_refused("machine", "/facts/bits", int64_t{1} << 62,
                 (base_ / "machine").string() + ": config.json: facts.bits: expected an integer");
  train("words", {.system = "word2vec", .set = {"epochs=1", "width=4"}});
  expect_refused("words", "/facts/losses", Json::array(),
                 (base_ / "words").string() + ": facts.losses: expected one for each of the 1");

  const auto expect_unjudged = [&](const std::string& name, const std::string& part) {
    expect_error((base_ / name).string() + ": " + part,
                 [&] { evaluate(base_ / name, "", "test"); });
  };
  train("graph", {.system = "gat", .set = {"nodes=60", "words=20", "epochs=0"}});
  Json other = config("graph");
  other["options"].erase("words");
  write_config("graph", other);
  expect_unjudged("graph", "generated data: 240 features, expected 20");
  train("experts", {.system = "mixture-of-experts", .set = {"epochs=0"}});
  other = config("experts");
  other["facts"]["mean"] = 1e300;
  write_config("experts", other);
  expect_unjudged("experts", "loss: ");
}

TEST(Naming, SaysTheRunOnceAndLeavesTheUsersWords) {
  const auto said_of = [](auto&& call) -> std::string {
    try {
      naming("out/run", call);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said_of([] { throw InvalidArgument("loss: nan"); }), "out/run: loss: nan");
  EXPECT_EQ(said_of([] { throw InvalidArgument("out/run/config.json: x"); }),
            "out/run/config.json: x");
  EXPECT_EQ(said_of([] { throw UsageError("--set: x"); }), "--set: x");
  EXPECT_EQ(said_of([] { torch::zeros({2}).view({3}); }).find("out/run: shape '[3]' is invalid"),
            0U);
  EXPECT_EQ(said_of([] { throw std::runtime_error("interrupted"); }), "interrupted");
  EXPECT_EQ(naming("out/run", [] { return 3; }), 3);
}

TEST_F(DamagedRun, MembersLieInTheRun) {
  train("elsewhere", {.system = "pooling", .set = {"bags=40", "epochs=0"}});
  train("pair", {.system = "pooling", .set = {"bags=40", "epochs=0"}, .seeds = 2});
  for (const char* outside : {"../elsewhere", "/etc", "..", ".", "", "seed-1/../../elsewhere"})
    expect_refused("pair", "/members", {outside}, "not the name of a part of the run");
}

TEST_F(DamagedRun, AStateThatCannotBe) {
  const TrainRequest once{.system = "pooling", .set = {"bags=40", "epochs=1", "batch=8"}};
  train("pool", once);
  const std::string path = (base_ / "pool/state.safetensors").string();
  const fovea::train::TensorFile good = fovea::train::read_tensors(path);
  const auto expect_state = [&](const char* name, const Json& value, const std::string& part) {
    fovea::train::TensorFile bad = good;
    Json numbers = Json::parse(bad.metadata.at("state"));
    numbers[name] = value;
    bad.metadata["state"] = numbers.dump();
    bad.metadata["sha256"] = io::sha256(bad.metadata["state"] + fovea::train::sum_of(bad.tensors));
    std::ofstream(path, std::ios::binary) << fovea::train::tensor_bytes(bad);
    std::filesystem::remove_all(base_ / "pool/.training");
    TrainRequest more = once;
    more.set = {"bags=40", "epochs=2", "batch=8"};
    more.resume = true;
    expect_error(part, [&] { train("pool", more); });
  };
  expect_state("batch", -5, "batch: expected an integer, at least 0");
  expect_state("batch", 1000, "batch 1000 of an epoch of");
  expect_state("epoch", "one", "epoch: expected an integer");
  expect_state("history", {3}, "history: expected");
  expect_state("lines", {3}, "lines: expected a list of texts");
  expect_state("kept", {1, 2, 3, 4}, "'kept.1.value' is missing");
}

}  // namespace
}  // namespace fovea::systems
