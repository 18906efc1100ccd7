// Labelled documents and the lines they are written as.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/types.h"

namespace fovea::text {

struct Document {
  std::string label = {};  // as written
  std::string id = {}, aspect = {};
  std::vector<std::string> texts =
      {};  // its sentences where the file separates them, otherwise one text
  size_t line = 0;
  // Of generated documents: which words (counted through the document) or sentences should be
  // looked at.
  std::vector<int32_t> truth_words = {}, truth_sentences = {};
  bool mixed = false;  // its clauses disagree: without the aspect it has no right answer
};

// How the columns of a file with tabs are read; text/layout.h says which files those are. kAuto goes
// by the first line, one tab: kLabelText, more: what the request says. JSON Lines have {"label",
// "text", "aspect"?, "true_words"?, "true_sentences"?, "mixed"?}; "text" may be a list of sentences.
// A first line that names the columns is no document.
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

// The documents of one file, in its order.
std::vector<Document> read_documents(const std::string& path, const ReadRequest& request);

// A document as a line of JSON, with "true_words" and "true_sentences" where they are known.
std::string json_line(const Document&);

}  // namespace fovea::text
