// Labelled documents: where they come from, and which of them are for learning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/split.h"
#include "text/documents.h"

namespace fovea::text {

struct Corpus {
  std::string path = {};
  std::vector<Document> documents = {};
  data::Splits splits = {};
};

// A key of each document: equal texts have equal keys.
std::vector<uint64_t> keys_of(const std::vector<Document>& documents);

// A file, split by the seed (or by fold; ids cv000 … cv999 give the ten published folds); a folder
// of train.*, test.* and perhaps dev.* or val.*; or such files' common beginning (stsa.binary for
// stsa.binary.train.gz, …). Without a validation part, a tenth of the training part is it. Equal
// texts never stand on both sides of a split that is drawn here; files that are parts stay as they are.
Corpus read_corpus(const ReadRequest& request);

// "72 lines, 3 classes: 'billing' 24, 'login' 24, 'shipping' 24", and what a user may not have meant:
// texts that are repeated, classes of one line, classes whose names differ in capital letters alone.
std::string in_words(const Corpus& corpus);

// Refuses labels of which nothing can be learned: one class only, or labels that mostly occur once,
// which are texts or numbers in the wrong column.
void check_labels(const Corpus& corpus);

}  // namespace fovea::text
