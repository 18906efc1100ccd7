#include "train/run/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/files/json.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

void flatten(const Json& from, const std::string& prefix, Curves::Row& row) {
  for (const auto& [name, value] : from.items()) {
    if (value.is_object())
      flatten(value, prefix + name + "/", row);
    else if (value.is_number())
      row.values.emplace_back(prefix + name, value.get<double>());
  }
}

// ---- event files --------------------------------------------------------------------------------
// A record is: length (8 bytes), checksum of it, bytes, checksum of them. A checksum is CRC-32C,
// turned by 15 bits and shifted by a constant (TFRecord). The bytes are a protocol buffer, Event.

uint32_t crc32c(const std::string& bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

template <class Number>
std::string little_endian(Number value) {  // true of every machine that Fovea is built for
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string checksum(const std::string& bytes) {
  const uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xA282EAD8U);
}

std::string record(const std::string& bytes) {
  const std::string length = little_endian(static_cast<uint64_t>(bytes.size()));
  return length + checksum(length) + bytes + checksum(bytes);
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

enum class Wire : uint8_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

std::string key(int field, Wire wire) {
  return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

std::string bytes_field(int field, const std::string& bytes) {
  return key(field, Wire::kBytes) + varint(bytes.size()) + bytes;
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(double time, int64_t step, const std::string& rest) {
  return record(key(1, Wire::kEight) + little_endian(time) + key(2, Wire::kVarint) +
                varint(static_cast<uint64_t>(step)) + rest);
}

// Summary: value = 1; Value: tag = 1, simple_value = 2.
std::string scalar(const std::string& tag, double value) {
  const std::string inside =
      bytes_field(1, tag) + key(2, Wire::kFour) + little_endian(static_cast<float>(value));
  return bytes_field(5, bytes_field(1, inside));
}

}  // namespace

std::optional<double> Curves::last(const std::string& name) const {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    for (const auto& [column, value] : row->values)
      if (column == name) return value;
  return std::nullopt;
}

Curves read_curves(const std::string& lines, const std::string& name) {
  Curves out;
  size_t number = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    const Json read = data::parse_json(line, fmt::format("{}, line {}", name, number));
    if (!read.is_object())
      throw InvalidArgument(fmt::format("{}, line {}: expected an object", name, number));
    Curves::Row row;
    flatten(read, "", row);
    // Where no step is counted, the epoch is the step.
    for (const char* counter : {"epoch", "step"})
      for (const auto& [column, value] : row.values)
        if (column == counter && value >= 0) row.step = std::llround(value);
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string curves_csv(const Curves& curves) {
  std::vector<std::string> columns;
  for (const Curves::Row& row : curves.rows)
    for (const auto& [name, value] : row.values)
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  std::string out = fmt::format("{}\n", fmt::join(columns, ","));
  for (const Curves::Row& row : curves.rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto found = std::find_if(row.values.begin(), row.values.end(),
                                      [&](const auto& one) { return one.first == columns[i]; });
      out += (i > 0 ? "," : "") +
             (found == row.values.end() ? std::string() : fmt::format("{}", found->second));
    }
    out += "\n";
  }
  return out;
}

std::string curves_events(const Curves& curves, double time) {
  std::string out = event(time, 0, bytes_field(3, "brain.Event:2"));
  for (const Curves::Row& row : curves.rows)
    for (const auto& [name, value] : row.values)
      if (name != "epoch" && name != "step") out += event(time, row.step, scalar(name, value));
  return out;
}

}  // namespace fovea::train
