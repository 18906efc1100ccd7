// Labelled documents: where they come from, what is known of them, and which of them are for
// learning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/split.h"
#include "train/types.h"

namespace fovea::text {

struct Document {
  std::string label = {};  // as written
  std::string id = {}, aspect = {};
  std::vector<std::string> texts =
      {};  // its sentences where the file parts them, otherwise one text
  size_t line = 0;
  // Of generated documents: which words (counted through the document) or sentences should be
  // looked at.
  std::vector<int32_t> truth_words = {}, truth_sentences = {};
  bool mixed = false;  // its clauses disagree: without the aspect it has no right answer
};

struct Corpus {
  std::string path = {};
  std::vector<Document> documents = {};
  data::Splits splits = {};
};

// How the columns of a file are read. kAuto goes by the first line: JSON Lines ({"label", "text",
// "aspect"?, "true_words"?, "true_sentences"?, "mixed"?}; "text" may be a list of sentences), no
// tab: `label text`, one tab: kLabelText, more: what the request says.
enum class Columns { kAuto, kLabelText, kLabelIdSentences, kLabelAspectText };
Columns columns_named(
    const std::string& name);  // "auto", "label,text", "label,id,sentences", "label,aspect,text"

struct ReadRequest {
  Source source = {};
  Columns columns = Columns::kAuto;
  Columns of_three = Columns::kLabelIdSentences;  // what kAuto takes three columns and more for
  // Labels are numbers: above it "positive", below "negative" (IMDB's stars: 5). NaN: labels are
  // names.
  double positive_above;
};

// A file, split by the seed (or by fold; ids cv000 … cv999 give the ten published folds); a folder
// of train.*, test.* and perhaps dev.* or val.*; or such files' common beginning (stsa.binary for
// stsa.binary.train.gz, …). Without a validation part, a tenth of the training part is it. Equal
// texts never stand on both sides of a split.
Corpus read_corpus(const ReadRequest& request);

// A document as a line of JSON, with "true_words" and "true_sentences" where they are known.
std::string json_line(const Document&);

// Documents of some objective sentences that hide a few polar ones (systems.md §6): `folder` holds
// rt-polarity.all and subj.all. MR is split before mixing, so that no sentence is shared.
// `documents` to learn from; 500 to choose by, 1,000 to judge by.
Corpus compose_hidden(const std::string& folder, uint64_t seed, int64_t documents);

}  // namespace fovea::text
