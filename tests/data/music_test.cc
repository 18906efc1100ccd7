// Pieces on a grid of sixteenths, MIDI files read back by a reader of this test's own, and labelled
// graphs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "data/files/file.h"
#include "data/graphs/labelled_graphs.h"
#include "data/music/chorales.h"
#include "data/music/midi.h"

namespace fovea::data {
namespace {

template <class Call>
std::string said(Call&& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// ---- a reader of MIDI files, from the standard ---------------------------------------------------

struct Note {
  int64_t channel, pitch, from, to;
  bool operator==(const Note&) const = default;
};
struct File {
  int64_t format = 0, tracks = 0, division = 0, tempo = 0;
  std::vector<Note> notes;
  std::vector<std::string> names;
};

class MidiReader {
 public:
  explicit MidiReader(const std::string& bytes) : bytes_(bytes) {}
  File read() {
    File out;
    EXPECT_EQ(text(4), "MThd");
    EXPECT_EQ(number(4), 6);
    out.format = number(2);
    out.tracks = number(2);
    out.division = number(2);
    for (int64_t i = 0; i < out.tracks; ++i) track(out);
    EXPECT_EQ(at_, bytes_.size());
    return out;
  }

 private:
  std::string text(size_t count) {
    const std::string out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  int64_t byte() { return static_cast<unsigned char>(bytes_.at(at_++)); }
  int64_t number(int bytes) {
    int64_t out = 0;
    for (; bytes > 0; --bytes) out = 256 * out + byte();
    return out;
  }
  int64_t varying() {
    for (int64_t out = 0;;) {
      const int64_t next = byte();
      out = 128 * out + next % 128;
      if (next < 128) return out;
    }
  }
  void track(File& out) {
    EXPECT_EQ(text(4), "MTrk");
    const size_t length = static_cast<size_t>(number(4)), end = at_ + length;
    int64_t now = 0;
    bool ended = false;
    std::map<std::pair<int64_t, int64_t>, int64_t> sounding;
    while (at_ < end) {
      EXPECT_FALSE(ended);
      now += varying();
      const int64_t status = byte(), channel = status % 16;
      switch (status / 16) {
        case 0x8:
        case 0x9: {
          const int64_t pitch = byte(), velocity = byte();
          if (status / 16 == 0x9 && velocity > 0) {
            EXPECT_FALSE(sounding.contains({channel, pitch}));
            sounding[{channel, pitch}] = now;
          } else {
            EXPECT_TRUE(sounding.contains({channel, pitch}));
            out.notes.push_back({channel, pitch, sounding[{channel, pitch}], now});
            sounding.erase({channel, pitch});
          }
          break;
        }
        case 0xC:
          byte();
          break;
        case 0xF: {
          const int64_t kind = byte();
          const std::string content = text(static_cast<size_t>(varying()));
          if (kind == 0x2F) ended = true;
          if (kind == 0x03) out.names.push_back(content);
          if (kind == 0x51)
            for (const char c : content)
              out.tempo = 256 * out.tempo + static_cast<unsigned char>(c);
          break;
        }
        default:
          FAIL() << "status " << status;
      }
    }
    EXPECT_EQ(at_, end);
    EXPECT_TRUE(ended && sounding.empty());
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

constexpr const char* kPiece = "74 - 72 -\t67 - - -\t0 - 60 62\t48 48 - 0";

TEST(Midi, IsReadBackNoteForNote) {
  const std::string bytes = midi_of(parse_chorale(kPiece, "piece", 1), 100);
  const File file = MidiReader(bytes).read();
  EXPECT_EQ(file.format, 1);
  EXPECT_EQ(file.tracks, 5);
  EXPECT_EQ(file.division, 480);
  EXPECT_EQ(file.tempo, 600'000);
  EXPECT_EQ(file.names, (std::vector<std::string>{"soprano", "alto", "tenor", "bass"}));
  EXPECT_EQ(file.notes, (std::vector<Note>{{0, 74, 0, 240},
                                           {0, 72, 240, 480},
                                           {1, 67, 0, 480},
                                           {2, 60, 240, 360},
                                           {2, 62, 360, 480},
                                           {3, 48, 0, 120},
                                           {3, 48, 120, 360}}));
}

// Times beyond one, two and three bytes of seven bits.
TEST(Midi, LongNotesKeepTheirLengths) {
  for (const int64_t sixteenths : {1, 2, 137, 20000}) {
    Chorale piece;
    for (int64_t t = 0; t < sixteenths; ++t)
      for (int64_t v = 0; v < kVoices; ++v)
        piece.tokens.push_back(t == 0 ? token_of_pitch(60 + v) : kHoldToken);
    const std::string bytes = midi_of(piece);
    const File file = MidiReader(bytes).read();
    ASSERT_EQ(file.notes.size(), 4u);
    for (const Note& note : file.notes) EXPECT_EQ(note.to - note.from, 120 * sixteenths);
  }
  EXPECT_EQ(said([] { midi_of({}, 3); }), "quarters: 3, expected 4 to 1000");
  EXPECT_TRUE(MidiReader(midi_of({})).read().notes.empty());
}

TEST(Chorales, SurviveBeingWritten) {
  const Chorale piece = parse_chorale(kPiece, "piece", 1);
  EXPECT_EQ(piece.sixteenths(), 4);
  EXPECT_EQ(chorale_text(piece), kPiece);
  EXPECT_EQ(parse_chorale(std::string("train\tbwv1\t") + kPiece, "piece", 1).name, "bwv1");
}

TEST(Chorales, WrongLinesAreNamed) {
  const auto message = [](const std::string& line) {
    return said([&] { parse_chorale(line, "f", 3); });
  };
  EXPECT_EQ(message("60\t60"),
            "f:3: 2 columns, expected four voices, or split, name and four voices, with tabs "
            "between them");
  EXPECT_EQ(message("60 -\t60 -\t60\t60 -"), "f:3: tenor: 1 sixteenths, expected 2, the soprano's");
  EXPECT_EQ(message("60\t60\t128\t60"),
            "f:3: tenor: pitch 128, expected 1 to 127, 0 (a rest) or - (goes on)");
  EXPECT_EQ(message("60\t-\t60\t60"), "f:3: alto: begins with -, expected a note or a rest");
  EXPECT_EQ(message("60\t\t60\t60"), "f:3: alto: empty, expected notes");
  EXPECT_NE(message("60\tx\t60\t60").find("f:3: alto"), std::string::npos);
}

TEST(Chorales, TheFileSaysThePart) {
  const auto path = std::filesystem::path(testing::TempDir()) / "fovea_chorales.tsv";
  std::ofstream(path) << "train\ta\t" << kPiece << "\nval\tb\t" << kPiece << "\ntest\tc\t" << kPiece
                      << "\n";
  const Chorales read = read_chorales(path.string());
  EXPECT_EQ(read.parts, (std::vector<Split>{Split::kTrain, Split::kValidation, Split::kTest}));
  EXPECT_EQ(read.pieces[2].name, "c");
  std::ofstream(path) << "tenor\ta\t" << kPiece << "\n";
  EXPECT_NE(said([&] { read_chorales(path.string()); }).find(":1:"), std::string::npos);
  std::ofstream(path) << kPiece << "\n";
  EXPECT_NE(said([&] { read_chorales(path.string()); }).find("4 columns, expected 6"),
            std::string::npos);
  std::ofstream(path) << "\n";
  EXPECT_NE(said([&] { read_chorales(path.string()); }).find("no piece in it"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(LabelledGraphs, SurviveBeingWrittenAndWrongLinesAreNamed) {
  const std::string line = "blue\t0 left\tred blue\t0:left:1 1:right:0";
  const LabelledGraph graph = parse_labelled_graph(line, "f", 1);
  EXPECT_EQ(labelled_graph_text(graph), line);
  EXPECT_EQ(labelled_graph_text(parse_labelled_graph(line.substr(5), "f", 1)), line.substr(5));
  EXPECT_EQ(parse_labelled_graph("0 left\tred\t", "f", 1).edges.size(), 0u);
  const auto message = [](const std::string& text) {
    return said([&] { parse_labelled_graph(text, "f", 2); });
  };
  EXPECT_NE(message("red blue").find("f:2: 1 columns, expected answer"), std::string::npos);
  EXPECT_EQ(message("2 left\tred blue\t"), "f:2: node 2, expected 0 to 1");
  EXPECT_EQ(message("0 left\tred blue\t0:left:5"), "f:2: node 5, expected 0 to 1");
  EXPECT_EQ(message("0 left\tred blue\t0-1"), "f:2: edge '0-1', expected from:label:to");
  EXPECT_EQ(message("0\tred blue\t"), "f:2: '0', expected a node and a question");
  EXPECT_EQ(message("0 left\t\t"), "f:2: no kinds of nodes, expected at least one");
}

}  // namespace
}  // namespace fovea::data
