#include "tests/conformance/case_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/engine/run.h"

namespace fovea::conformance {

using cases::Storage;
using engine::DType;
using engine::View;

std::filesystem::path root() {
  if (const char* folder = std::getenv("FOVEA_CONFORMANCE")) return folder;
  const char* source = std::getenv("FOVEA_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "../shared/conformance";
}

std::vector<std::filesystem::path> cases_of(const std::string& suite) {
  std::vector<std::filesystem::path> folders;
  if (!std::filesystem::is_directory(root() / suite)) return folders;
  for (const auto& entry : std::filesystem::directory_iterator(root() / suite)) {
    if (std::filesystem::exists(entry.path() / "meta.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

CaseFile::CaseFile(const std::filesystem::path& folder) : folder_(folder) {
  std::ifstream file(folder / "meta.json");
  meta = nlohmann::json::parse(file);
  for (const auto& entry : meta["inputs"]) inputs_[entry["name"]] = entry;
  for (const auto& entry : meta["outputs"]) outputs_[entry["name"]] = entry;
}

double CaseFile::attribute(const std::string& name, double otherwise) const {
  const auto& attributes = meta["attributes"];
  const auto found = attributes.find(name);
  return found == attributes.end() || found->is_null() ? otherwise : found->get<double>();
}

View CaseFile::input(const std::string& name) const { return load(inputs_.at(name)); }
View CaseFile::expected(const std::string& name) const { return load(outputs_.at(name)); }

View CaseFile::load(const nlohmann::json& entry) const {
  static const std::map<std::string, DType> types = {
      {"float32", DType::kFloat32},   {"float64", DType::kFloat64}, {"float16", DType::kFloat16},
      {"bfloat16", DType::kBFloat16}, {"bool", DType::kBool},       {"int64", DType::kInt32}};
  const auto shape = entry["shape"].get<std::vector<int64_t>>();
  View view = {.dtype = types.at(entry["dtype"]), .rank = static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), view.size.begin());
  view = storage.zeros_like(view, view.dtype);
  std::ifstream file(folder_ / entry["file"].get<std::string>(), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (entry["dtype"] == "int64") {
    const auto* values = reinterpret_cast<const int64_t*>(bytes.data());
    Storage::each(view,
                  [&](int64_t at) { Storage::set(view, at, static_cast<double>(values[at])); });
  } else {
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(view.data));
  }
  return view;
}

void expect_close(const View& got, const View& expected, const nlohmann::json& tolerance,
                  const std::string& what) {
  const Numbers x = numbers(got), y = numbers(expected);
  ASSERT_EQ(x.size(), y.size()) << what;
  const double atol = tolerance["atol"], rtol = tolerance["rtol"];
  for (size_t n = 0; n < x.size(); ++n) {
    if (x[n] == y[n]) continue;
    ASSERT_LE(std::fabs(x[n] - y[n]), atol + rtol * std::fabs(y[n]))
        << what << "[" << n << "]: " << x[n] << ", expected " << y[n];
  }
}

}  // namespace fovea::conformance
