// A conformance case as it lies on disk: meta.json and raw tensors.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases/storage.h"
#include "fovea/engine.h"

namespace fovea::conformance {

// $FOVEA_CONFORMANCE, or ../shared/conformance beside the source root.
std::filesystem::path root();
// The folders of a suite's cases, sorted; empty where it is absent.
std::vector<std::filesystem::path> cases_of(const std::string& suite);

struct CaseFile {
  explicit CaseFile(const std::filesystem::path& folder);

  // int64 arrays become int32.
  engine::View input(const std::string& name) const;
  engine::View expected(const std::string& name) const;
  bool has_input(const std::string& name) const { return inputs_.contains(name); }
  bool has_output(const std::string& name) const { return outputs_.contains(name); }
  // An attribute that is not set has its default.
  double attribute(const std::string& name, double otherwise) const;

  nlohmann::json meta;
  mutable cases::Storage storage{1};

 private:
  engine::View load(const nlohmann::json& entry) const;

  std::filesystem::path folder_;
  std::map<std::string, nlohmann::json> inputs_, outputs_;
};

// |got - expected| <= atol + rtol |expected|, infinities equal: where not, fails the running test,
// naming `what`.
void expect_close(const engine::View& got, const engine::View& expected,
                  const nlohmann::json& tolerance, const std::string& what);

}  // namespace fovea::conformance
