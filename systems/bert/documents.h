// The documents an encoder is pre-trained on: read, or generated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/split.h"
#include "train/types.h"

namespace fovea::systems::bert {

using Sentences = std::vector<std::string>;

struct Documents {
  std::vector<Sentences> texts;
  data::Splits splits;
};

// The sentences of a text. A sentence ends at . ! ? before a blank, with the quotes and brackets
// after them, and at HTML line breaks.
Sentences sentences_of(std::string_view text);

struct DocumentRequest {
  int64_t column = 0;  // which of the tab-separated columns is the text; 0: the last
  int64_t most = 0;    // documents at most, spread over the file; 0: all
};
// A text file. If it has blank lines, they separate documents, and a line is a sentence. Otherwise
// a line is a document.
Documents read_documents(const Source& source, const DocumentRequest& request);

// "anna is a baker . she works in the bakery . …": four to six sentences about one person, whose trade
// decides place, tool and product.
struct Trade {
  std::string name, place, tool, product;
};
const std::vector<Trade>& trades();
Sentences draw_document(uint64_t seed, size_t trade);
Documents generate_documents(const Source& source, int64_t count);

// A question about such a document, and where its answer stands.
struct Question {
  std::string question, context, answer;
  int64_t start = 0;  // of the answer, in the bytes of the context
};
Question draw_question(uint64_t seed);

}  // namespace fovea::systems::bert
