#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <random>

#include "data/files/file.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"

namespace fovea::data {
namespace {

// In a quadratic reader this takes a quarter of a minute, in a linear one a fraction of a second.
TEST(Safetensors, AHundredThousandTensorsAreNoMatter) {
  Safetensors many;
  for (int i = 0; i < 100'000; ++i)
    many.arrays["layer." + std::to_string(i)] = {ElementType::kUInt8, {1}, "x"};
  many.metadata["format"] = "pt";
#if defined(__SANITIZE_ADDRESS__)
  constexpr double kSeconds = 60;
#else
  constexpr double kSeconds = 5;
#endif
  const std::clock_t start = std::clock();
  const std::string bytes = safetensors_bytes(many);
  const Safetensors read = parse_safetensors(bytes, "many");
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSeconds);
  EXPECT_EQ(read.arrays.size(), many.arrays.size());
  EXPECT_EQ(read.metadata, many.metadata);
}

Array floats(std::vector<int64_t> shape, std::vector<float> values) {
  Array array{ElementType::kFloat32, std::move(shape), std::string(values.size() * 4, '\0')};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::string npy(const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += std::string("\x01\x00", 2);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

std::string safetensors(const std::string& header, const std::string& data,
                        std::optional<uint64_t> length = {}) {
  std::string file;
  for (size_t i = 0; i < 8; ++i)
    file += static_cast<char>(length.value_or(header.size()) >> (8 * i) & 0xff);
  return file + header + data;
}

// What a reader says to a file it must refuse.
template <class Parse>
std::string refusal(Parse parse, const std::string& file) {
  try {
    parse(file, "f");
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Npy, RoundTripsEveryShape) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{}, {0}, {6}, {2, 3}, {1, 2, 3}, {3, 0, 2}}) {
    const auto bytes = byte_count(ElementType::kFloat32, shape);
    ASSERT_TRUE(bytes);
    const Array array{ElementType::kFloat32, shape, std::string(*bytes, 'x')};
    const std::string file = npy_bytes(array);
    const Array back = parse_npy(file, "f");
    EXPECT_EQ(back.shape, array.shape);
    EXPECT_EQ(back.bytes, array.bytes);
    EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0u);
  }
}

TEST(Npy, TurnsColumnsFirstIntoRowsFirst) {
  const Array expected = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array columns = floats({}, {1, 4, 2, 5, 3, 6});
  const std::string file =
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", columns.bytes);
  EXPECT_EQ(parse_npy(file, "f").bytes, expected.bytes);
}

TEST(Npy, RefusesWhatIsWrongByName) {
  const auto said = [](const std::string& header, const std::string& data = "") {
    return refusal(parse_npy, npy(header, data));
  };
  EXPECT_NE(refusal(parse_npy, "").find("not an npy file"), std::string::npos);
  EXPECT_NE(
      refusal(parse_npy, std::string("\x93NUMPY\x01\x00\xff\xff{}", 12)).find("header of 65535"),
      std::string::npos);
  EXPECT_NE(refusal(parse_npy, std::string("\x93NUMPY\x09\x00\x00\x00", 10)).find("version 9"),
            std::string::npos);
  EXPECT_NE(
      said("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd").find("npy type"),
      std::string::npos);
  EXPECT_NE(said("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "abcd").find("npy type"),
            std::string::npos);
  EXPECT_NE(
      said("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcd").find("expected 8"),
      std::string::npos);
  EXPECT_NE(said("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}").find("at least 0"),
            std::string::npos);
  EXPECT_NE(said("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}")
                .find("more than"),
            std::string::npos);
  EXPECT_NE(said("{'descr': '<f4', 'shape': (1,)}", "abcd").find("expected descr"),
            std::string::npos);
  EXPECT_NE(said("{'descr': '<f4', 'descr': '<f4'}").find("given twice"), std::string::npos);
}

TEST(Safetensors, RoundTripsArraysAndMetadata) {
  Safetensors content{
      {{"b", floats({2}, {1, 2})}, {"a", floats({1, 3}, {3, 4, 5})}, {"none", floats({0}, {})}},
      {{"step", "12"}}};
  const std::string file = safetensors_bytes(content);
  const Safetensors back = parse_safetensors(file, "f");
  ASSERT_EQ(back.arrays.size(), 3u);
  EXPECT_EQ(back.metadata, content.metadata);
  for (const auto& [name, array] : content.arrays) {
    EXPECT_EQ(back.arrays.at(name).bytes, array.bytes) << name;
    EXPECT_EQ(back.arrays.at(name).shape, array.shape) << name;
  }
  EXPECT_EQ((file.find('}') != std::string::npos), true);
}

TEST(Safetensors, RefusesWhatIsWrongByName) {
  const auto said = [](const std::string& header, const std::string& data = "") {
    return refusal(parse_safetensors, safetensors(header, data));
  };
  const auto entry = [](const char* name, const char* type, const char* shape,
                        const char* offsets) {
    return std::string("\"") + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  EXPECT_NE(refusal(parse_safetensors, "short").find("cut short"), std::string::npos);
  EXPECT_NE(refusal(parse_safetensors, safetensors("{}", "", uint64_t{1} << 62)).find("cut short"),
            std::string::npos);
  EXPECT_NE(refusal(parse_safetensors, safetensors("{}", "", ~uint64_t{0})).find("cut short"),
            std::string::npos);
  EXPECT_NE(said("[]").find("not a JSON object"), std::string::npos);
  // Found out before it is kept in memory.
  std::string list = "0";
  for (int i = 0; i < 2000; ++i) list += ",0";
  for (const std::string& shape : {"[" + list + "]", "[[" + list + "]]"})
    EXPECT_NE(said("{" + entry("a", "F32", shape.c_str(), "[0,4]") + "}", "abcd").find("too long"),
              std::string::npos);
  EXPECT_NE(said("{\"a\":").find("not a JSON object"), std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F33", "[1]", "[0,4]") + "}", "abcd").find("unknown dtype"),
            std::string::npos);
  EXPECT_NE(
      said("{" + entry("a", "F32", "[1]", "[0,8]") + "}", "abcdefgh").find("expected 4 bytes"),
      std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F32", "[2]", "[0,8]") + "}", "abcd").find("within 4"),
            std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F32", "[-1]", "[0,4]") + "}", "abcd").find("at least 0"),
            std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F32", "[4611686018427387904,8]", "[0,4]") + "}", "abcd")
                .find("impossible"),
            std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F32", "[1]", "[4,0]") + "}", "abcd").find("data_offsets"),
            std::string::npos);
  EXPECT_NE(
      said("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}",
           "abcdef")
          .find("an overlap"),
      std::string::npos);
  EXPECT_NE(
      said("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[5,9]") + "}",
           "abcdefghi")
          .find("a gap"),
      std::string::npos);
  EXPECT_NE(said("{" + entry("a", "F32", "[1]", "[0,4]") + "}", "abcdef").find("tensors use 4"),
            std::string::npos);
  EXPECT_NE(
      said("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[0,4]") + "}",
           "abcd")
          .find("given twice"),
      std::string::npos);
  EXPECT_NE(said(R"({"__metadata__":{"a":1}})").find("not a text"), std::string::npos);
  EXPECT_NE(said(std::string(2000, '[')).find("nested too deeply"), std::string::npos);
}

// A changed, cut or lengthened file is read or refused; nothing else happens (address sanitiser is
// on in these tests).
template <class Parse>
void fuzz(const std::string& good, Parse parse) {
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string file = good;
    for (unsigned change = 0; change <= random() % 4; ++change) {
      if (file.empty()) break;
      const size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file.resize(at);
          break;
        case 2:
          file.insert(at, 1 + random() % 9, static_cast<char>(random()));
          break;
        default:
          file[at] = "0123456789,:[]{}\"'"[random() % 18];
          break;
      }
    }
    refused += refusal(parse, file) != "accepted";
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Npy, SurvivesDamage) { fuzz(npy_bytes(floats({2, 3}, {1, 2, 3, 4, 5, 6})), parse_npy); }
TEST(Safetensors, SurvivesDamage) {
  fuzz(safetensors_bytes({{{"a", floats({2}, {1, 2})}, {"b", floats({1}, {3})}}, {{"k", "v"}}}),
       parse_safetensors);
}

}  // namespace
}  // namespace fovea::data
