// wordpiece_lines FILE: for each line of the input, a JSON text, the numbers of its pieces. FILE is a
// vocab.txt or a tokenizer.json. For the comparison with `tokenizers`.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "data/files/file.h"
#include "text/wordpiece/read.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "wordpiece_lines FILE\n"), 2;
  std::ios::sync_with_stdio(false);
  const std::string path = argv[1], bytes = fovea::data::read_file(path);
  const auto pieces = path.ends_with(".json") ? fovea::text::parse_tokenizer(bytes, path)
                                              : fovea::text::parse_vocabulary(bytes, path);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string out;
    for (const int64_t id : pieces.encode(nlohmann::json::parse(line).get<std::string>()))
      out += std::to_string(id) + " ";
    std::cout << out << '\n';
  }
}
