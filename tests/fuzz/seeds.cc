// Writes the corpora that fuzzing starts from: small valid files of every format, most of them as
// our own writers write them. `fuzz_seeds FOLDER`, which is tests/fuzz/corpus.
#include <cstdio>
// After <cstdio>: its header uses FILE without including it.
#include <jpeglib.h>
#include <png.h>
#include <sentencepiece_trainer.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "data/formats/bags.h"
#include "data/formats/graph.h"
#include "data/formats/item_sets.h"
#include "data/formats/llama2c.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data/formats/vocabulary.h"
#include "data/pictures/idx.h"
#include "data/random.h"
#include "data/recipes.h"
#include "explain/explanation.h"
#include "systems/general/memories.h"
#include "tests/data/gzip.h"
#include "text/documents.h"
#include "text/vectors.h"
#include "text/wordpiece/read.h"
#include "train/descent/recipe.h"
#include "train/run/manifest.h"
#include "translate/codec.h"

namespace fovea::fuzz {
namespace {

using Files = std::map<std::string, std::string>;  // TARGET/NAME -> bytes

// Files of a folder in one input, and the choices of a target, which are read from the end.
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (&part == parts.data() ? "" : "\xFF") + part;
  return out;
}
std::string with_choices(std::string bytes, const std::string& choices) {
  return bytes + std::string(choices.rbegin(), choices.rend());
}

constexpr int kSide = 12;

std::vector<unsigned char> pixels(int channels) {
  data::Random random(3);
  std::vector<unsigned char> out(static_cast<size_t>(kSide * kSide * channels));
  for (auto& value : out) value = static_cast<unsigned char>(random.below(256));
  return out;
}

std::string png(png_uint_32 format, int channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
  image.format = format;
  const auto from = pixels(channels);
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, from.data(), 0, nullptr);
  std::string out(size, '\0');
  png_image_write_to_memory(&image, out.data(), &size, 0, from.data(), 0, nullptr);
  out.resize(size);
  return out;
}

std::string jpeg(J_COLOR_SPACE space, int channels, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = info.image_height = kSide;
  info.input_components = channels;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const auto from = pixels(channels);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<unsigned char*>(from.data()) +
                   info.next_scanline * static_cast<unsigned>(kSide * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

void add_arrays(Files& files) {
  const std::string images = data::idx_bytes({{2, 3, 3}, std::vector<uint8_t>(18, 7)}),
                    labels = data::idx_bytes({{2}, {1, 9}});
  files["idx/images"] = images;
  files["idx/packed"] = data::gzip(labels);
  files["digits/two"] = with_choices(images + labels, {char(images.size())});
  files["npy/f4"] = data::npy_bytes({data::ElementType::kFloat32, {2, 3}, std::string(24, 'a')});
  files["npy/i8"] = data::npy_bytes({data::ElementType::kInt64, {}, std::string(8, 'b')});
  files["npy/columns"] = std::string("\x93NUMPY\x02\x00\x3c\x00\x00\x00", 12) +
                         "{\"descr\": '|u1', 'fortran_order': True, 'shape': (2, 2, 1),} \n1234";
  files["safetensors/two"] =
      data::safetensors_bytes({{{"weight", {data::ElementType::kBFloat16, {2, 2}, "12345678"}},
                                {"bias", {data::ElementType::kFloat64, {1}, "12345678"}}},
                               {{"format", "pt"}}});
  files["safetensors/none"] = data::safetensors_bytes({});
  files["regions/grid"] = with_choices(
      data::npy_bytes({data::ElementType::kFloat32, {2, 2, 2, 1}, std::string(32, 'a')}), {0});
  const data::Array halves{data::ElementType::kFloat16, {2, 1}, "1234"};
  files["regions/named"] =
      with_choices(data::safetensors_bytes({{{"a.png", halves}, {"b", halves}}, {}}), {1});
  const data::Array columns{data::ElementType::kInt8, {2, 3, 2, 2}, "abcdefghijklmnopqrstuvwx"};
  files["regions/channels"] = with_choices(data::npy_bytes(columns), {0});
  files["regions/features"] =
      with_choices(data::safetensors_bytes({{{"features", columns}}, {}}), {1});
  files["regions/scaled"] = with_choices("0.5\n2\n\xff" + std::string(8, 'c'), {2});
  for (const auto& [name, own] : {std::pair("shared", false), {"own", true}}) {
    data::Llama2c model{.width = 4,
                        .hidden = 2,
                        .layers = 1,
                        .heads = 2,
                        .key_heads = 1,
                        .vocabulary = 3,
                        .context = 2,
                        .own_output = own};
    const auto put = [&](const char* array, std::vector<int64_t> shape) {
      data::Array& to = model.arrays[array] = {data::ElementType::kFloat32, std::move(shape), {}};
      for (size_t i = 0; i < *data::byte_count(to.type, to.shape) / 4; ++i)
        to.bytes += std::string("\0\0\0\x3f", 4);  // 0.5
    };
    put("tok_embeddings", {3, 4});
    for (const char* norm : {"attention_norm", "ffn_norm"}) put(norm, {1, 4});
    for (const char* square : {"wq", "wo"}) put(square, {1, 4, 4});
    for (const char* narrow : {"wk", "wv", "w1", "w3"}) put(narrow, {1, 2, 4});
    put("w2", {1, 4, 2});
    put("norm", {4});
    if (own) put("output", {3, 4});
    files[std::string("llama2c/") + name] = data::llama2c_bytes(model);
  }
  data::Llama2cTokens pieces{{"<unk>", "<s>", "</s>"}, {0, -1, -2}};
  for (int byte = 0; byte < 256; ++byte)
    pieces.pieces.push_back(
        "<0x" + std::string{"0123456789ABCDEF"[byte / 16], "0123456789ABCDEF"[byte % 16]} + ">");
  for (const char* piece : {" ", "a", "b", "ab", " ab"}) pieces.pieces.emplace_back(piece);
  while (pieces.scores.size() < pieces.pieces.size())
    pieces.scores.push_back(-static_cast<float>(pieces.scores.size()));
  files["llama2c_tokens/two"] = joined({data::llama2c_token_bytes(pieces), "ab abb"});
  const std::string turned("II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
                           26);
  files["exif/turned"] = turned;
  files["quantised_network/one"] = joined(
      {"input 9 shape=2x2x1 scale=0.5 zp=128\n"
       "CONV 1 9 out_shape=2x2x1 out_scale=0.5 out_zp=0 stride=1 pad=SAME act=0 w_shape=1x1x1x1 "
       "w_scale=0.1 w_zp=3 w_off=0 b_off=1\nADD 2 1,9 out_shape=2x2x1 out_scale=1 out_zp=0\n"
       "AVGPOOL 3 2 out_shape=1x1x1 out_scale=1 out_zp=0\n",
       std::string("\x05\x01\0\0\0", 5)});
  files["png/grey"] = png(PNG_FORMAT_GRAY, 1);
  files["png/colour"] = png(PNG_FORMAT_RGBA, 4);
  files["jpeg/grey"] = jpeg(JCS_GRAYSCALE, 1, false);
  files["jpeg/colour"] = jpeg(JCS_RGB, 3, false);
  files["jpeg/progressive"] = jpeg(JCS_GRAYSCALE, 1, true);
  // The target puts the first two bytes back.
  files["gzip/text"] = data::gzip("some text, some text, some text\n").substr(2);
  files["gzip/members"] = data::gzip("one\n").substr(2) + data::gzip("two\n");
}

void add_tables(Files& files) {
  const std::string table = "rownames,x1,x2,y\n1,0.5,-2,3\n2,,\"1e3\",4\n3, 7,NA,-0\n";
  files["csv/three"] = with_choices(table, {3, 3, 3});
  files["csv/quoted"] = with_choices("\"a,\"\"b\"\"\",y\r\n\"1\",2\r\n3,4\r\n", {0, 1, 0});
  files["bags/two"] = "bag,label,f0,f1\nm,1,1,2\nk,0,3,4\nm,1,-1,0.5\ne,0,,\n";
  data::CitationGraph graph{.nodes = 4, .features = 3, .classes = 2};
  graph.edges = {{0, 1}, {1, 2}, {3, 3}};
  graph.words = {.row_offsets = {0, 2, 3, 3, 6}, .columns = {0, 2, 1, 0, 1, 2}};
  graph.labels = {0, 1, -1, 0};
  graph.splits = {{0}, {1}, {3}};
  const auto planetoid = data::planetoid_files(graph);
  std::vector<std::string> parts;
  for (const char* name : {"meta.txt", "edges.txt", "features.txt", "labels.txt", "split_train.txt",
                           "split_val.txt", "split_test.txt"})
    parts.push_back(planetoid.at(name));
  files["planetoid/four"] = joined(parts);
  files["node_table/three"] =
      joined({"id,label,split,f0,f1\na,x,train,1,2\n\"b c\",y,test,3,4\n"
              "d,,,5,6\n",
              "from,to\na,\"b c\"\nd,a\n"});
  files["node_table/numbered"] = joined({"label,f0\n0,1\n1,2\n", "0\t1\n1 0\n"});
  files["edges/three"] = with_choices("0 1\n1,2\n3\t0\n", {0, 5});
  files["item_sets/three"] = "1\tgreek\tsalt|pepper|oil\n2\titalian\toil| salt |basil\nsalt|oil\n";
  files["recipes/lines"] = data::recipe_lines({{.picture = "a.png",
                                                .kind = "soup",
                                                .title = "pea soup",
                                                .ingredients = {"peas", "salt"},
                                                .steps = {"boil the peas", "serve"},
                                                .split = "train"},
                                               {.ingredients = {}}});
  files["recipes/five"] =
      "train\tapple_pie\tApple Pie_15\traw apple\tapple|flour\ntest\tpizza\tPizza\tx\tcheese\n";
  files["recipes/three"] = "10\tgreek\tolives|feta\n11\t?\tsalt\n";
}

void add_texts(Files& files) {
  files["lines/three"] =
      "\xEF\xBB\xBFone two\r\nthr\xC3\xA9"
      "e\xC2\xA0"
      "four\n\n";
  files["labelled_text/space"] = with_choices("1 good film\n0 bad\n", {0});
  files["labelled_text/tab"] = with_choices("pos\tgood\nneg\t\n", {2});
  files["labelled_text/json"] =
      with_choices("{\"label\": 1, \"text\": \"a\"}\n{\"label\": \"b\", \"text\": \"\"}\n", {3});
  files["documents/json"] = with_choices(
      "{\"label\": \"a\", \"aspect\": \"food\", \"text\": [\"one .\", \"two\"], "
      "\"true_words\": [0, 2], \"true_sentences\": [1], \"mixed\": true}\n",
      {0, 0, 0});
  files["documents/stars"] = with_choices("9\tid1\tgood .\tvery .\n2\tid2\tbad .\n", {2, 0, 1});
  files["documents/aspect"] = with_choices("pos\tfood\tgood soup\n", {3, 1, 0});
  files["corpus/parts"] =
      with_choices(joined({"1 a b\n0 c\n1 d\n0 e\n1 f\n0 g\n", "1 x\n0 y\n"}), {0, 0, 0});
  files["corpus/folds"] =
      with_choices("a\tcv000\tx .\nb\tcv123\ty .\na\tcv999\tz .\n", {1, 10, 1, 0});
  files["vocabulary/two"] = data::Vocabulary::of({{"the", "the", "cat"}}, {}).text();
  const text::WordPiece pieces = text::parse_vocabulary(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##do\ncafe\n!\n", "vocab.txt");
  const std::string words = "Undo the caf\xC3\xA9![MASK]";
  files["wordpiece_vocabulary/nine"] = joined({text::vocabulary_bytes(pieces), words});
  files["wordpiece_tokenizer/nine"] = joined({text::tokenizer_bytes(pieces), words});
  const text::Vectors vectors{2, {"the", "cat"}, {1, -0.5f, 3e-9f, 4}};
  files["vectors/glove"] = text::vector_bytes(vectors, text::VectorFormat::kGlove);
  files["vectors/text"] = text::vector_bytes(vectors, text::VectorFormat::kWord2vecText);
  files["vectors/binary"] = text::vector_bytes(vectors, text::VectorFormat::kWord2vecBinary);
  files["parallel/gold"] = joined(
      {"the cat ||| le chat\na dog ||| un chien\n", "le chat\nun chien\n", "1-1 2p2\n1-1 2?2\n"});
  files["parallel/table"] = joined({"a cat\tun chat\nb\tc\n", "x\ny\n", "\n1-1\n"});
  files["links/pharaoh"] = "0-0 1-2 2-1\n0-0 1-1\n1-1 2p3 4?5\n";
  files["links/naacl"] = "1 1 1 S\n1 2 3 P\n2 1 1\n";
  files["tokens/words"] =
      with_choices("Mr. Smith didn't go.<br />\"It's 3.5 -- fine!\" (yes).", {30});
  files["unicode/mixed"] =
      "Stra\xC3\x9F"
      "e \xCE\xA3\xCE\x91\xCE\xA3 \xE2\x80\x83 \xF0\x9F\x98\x80 \xFF";
  files["score/two"] = with_choices(
      joined({"the cat sat on the mat .", "the cat sat on a mat .", "a cat sat on the mat ."}),
      {0, 0, 0, 0, 2, 0});
  files["chorales/two"] =
      "train\tbwv1\t74 - 72 -\t67 - - -\t0 - 60 62\t48 48 - 0\ntest\tbwv2\t60\t0\t48\t36\n";
  files["labelled_graphs/two"] = "blue\t0 left\tred blue\t0:left:1 1:right:0\nred\t0 left\tred\t\n";
  files["stories/babi"] =
      "1 Mary took the milk.\n2 Mary went to the kitchen.\n3 Where is the milk?\tkitchen\t1 2\n"
      "4 John slept.\n5 Who slept?\tJohn\t4\n1 A.\n2 What?\ta,b\n";
  files["stories/json"] =
      "{\"story\": [\"Mary slept.\"], \"question\": \"Who?\", \"answer\": \"Mary\", "
      "\"supporting_lines\": [1]}\n{\"story\": [], \"question\": \"Who?\", \"answer\": \"no\"}\n";
  files["stories/plain"] = "Mary slept.\nWho slept?\tMary\t1\n\nJohn ran.\nWho ran?\tJohn\n";
  files["picture_questions/two"] =
      "{\"picture\": \"pictures.idx#3\", \"question\": \"what\", \"answer\": \"red\", "
      "\"cells\": [2, 1]}\n{\"picture\": \"a.png\", \"question\": \"what\", \"answers\": "
      "[\"a\", \"b\", \"a\"]}\n";
  files["captions/tabs"] = "a.jpg\ttrain\tA dog .\tA cat .\nb.jpg\ttest\tA bird .\n";
  files["captions/token"] = "a.jpg#0\tA dog .\na.jpg#1\tA cat .\n";
  files["captions/table"] = "image,caption\na.jpg,\"A dog, a cat\"\n";
  files["captions/named"] = "text;split;file_name\n\"A dog; a cat\";dev;a.jpg\n";
  files["captions/bars"] =
      "image_name| comment_number| comment\na.jpg| 0| A dog .\na.jpg| 4   A cat .\n";
  files["captions/labels"] =
      "{\"file_name\": \"a.jpg\", \"labels\": [\"dog\", \"grass\"]}\n{\"file_name\": \"b.jpg\", "
      "\"labels\": []}\n";
  files["captions/lines"] =
      "{\"image\": \"a.jpg\", \"split\": \"val\", \"captions\": [\"a dog\"], \"boxes\": {\"dog\": "
      "[0, 0.1, 0.5, 0.5]}}\n";
  files["captions/karpathy"] =
      "{\"images\": [{\"filename\": \"a.jpg\", \"split\": \"train\", \"sentences\": [{\"raw\": "
      "\"a dog\"}, {\"tokens\": [\"a\", \"cat\"]}]}]}";
  files["captions/coco"] =
      "{\"images\": [{\"id\": 7, \"file_name\": \"a.jpg\"}], \"annotations\": [{\"image_id\": 7, "
      "\"caption\": \"a dog\"}]}";
  files["picture_questions/tab"] = "a.png\twhat is it\n";
  files["sentences/both"] = "dog-a sees cat-o today\n";
  files["sentences/it"] = "dog\tthe dog ate because it was hungry\n";
  files["markup/mathml"] =
      "<math display=\"block\"><mfrac><mi>a</mi><mn>2</mn></mfrac><mo>&lt;</mo></math>";
  files["markup/prose"] = "A `code` <b>\n\nint x = 1;  // why\n\"text\" </script>";
}

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

// Without the 240 KB of Unicode's normal forms that our own models carry.
std::string piece_model(const std::vector<std::string>& text, const char* type) {
  std::string model;
  Lines lines(text);
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", type}, {"vocab_size", "30"}, {"hard_vocab_limit", "false"},
      {"pad_id", "0"},      {"unk_id", "1"},      {"bos_id", "2"},
      {"eos_id", "3"},      {"minloglevel", "2"}, {"normalization_rule_name", "identity"}};
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return model;
}

void add_models(Files& files) {
  const std::vector<std::string> lines(20, "the cat sat on the mat and the dog sat on the log");
  for (const auto& [name, kind] : {std::pair("words", translate::CodecKind::kWords),
                                   std::pair("characters", translate::CodecKind::kCharacters)})
    files[std::string("pieces/") + name] = translate::learn_codec(lines, {.kind = kind})->bytes();
  for (const char* type : {"bpe", "unigram"})
    files[std::string("pieces/") + type] = piece_model(lines, type);
  std::string memories;
  for (const auto& memory : systems::general::generate(1, 0.1, 1))
    memories += systems::general::json_line(memory);
  files["memories/one"] = memories.substr(0, 4096);
  files["settings/typed"] = joined({"epochs=3", "rate=1e-3", "optimiser=adamw", "columns=a,b"});
  files["settings/restored"] = "{\"epochs\": 2, \"shared\": false}";
  files["run_config/run"] =
      "{\"version\": 2, \"system\": \"mil\", \"data\": null, \"data_sha256\": null, "
      "\"data_seed\": 1, \"fold\": 0, "
      "\"folds\": 0, \"threads\": 1, \"options\": {\"epochs\": 2}, \"seed\": 1, \"facts\": "
      "{\"width\": 3}, "
      "\"files\": [\"vocabulary.txt\"]}";
  train::Manifest manifest{"0.1.0", "sum"};
  manifest.add("config.json", "{}");
  manifest.add("seed-1/model.safetensors", "weights");
  files["manifest/run"] = manifest.text();
  files["choices/cap"] = joined({"additive:weight=w.npy,activation=tanh|soft_cap:cap=30",
                                 "entmax:alpha=1.5", "causal&window:left=8"});
  files["choices/kernel"] = joined({"kernel:name=box,bandwidth=h.npy|relative:key_table=k,clip=2",
                                    "hard:sample=true", "fixed:stride=4,summary=1&documents"});
  files["choices/custom"] = joined({"dot:scale=2|custom:handle=7|alibi:slopes=s", "top_k:k=3",
                                    "graph:row_offsets=@0,columns=@1"});
}

void add_explanations(Files& files) {
  explain::Explanation e;
  e.system = "seq2seq";
  e.title = "An alignment";
  e.view = explain::View::kMatrix;
  e.score = "dot", e.normaliser = "softmax", e.structure = "dense";
  e.queries = {{.text = "le"}, {.text = "chat"}};
  e.keys = {{.text = "the"}, {.text = "cat", .value = 0.5}};
  e.maps = {{.dense = {0.75f, 0.25f, 0, 1}}};
  e.truth = explain::Truth{.label = "gold", .sure = {{0, 0, 1}}};
  e.plots = {{.title = "loss", .curves = {{.label = "a", .x = {1, 2}, .y = {3, 4}}}}};
  e.tables = {{.title = "steps", .columns = {"a"}, .rows = {{"1"}}}};
  files["explanation/matrix"] = explain::to_json(e);
}

// Bytes of every value, which is what the engine's targets choose by.
void add_problems(Files& files) {
  for (const char* target : {"attend", "attend_hostile"})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      data::Random random(seed);
      std::string& bytes = files[std::string(target) + "/" + std::to_string(seed)];
      for (int i = 0; i < 64; ++i) bytes += static_cast<char>(random.below(256));
    }
}

void add_requests(Files& files) {
  files["request/get"] = "GET /runs HTTP/1.1\r\nHost: localhost:8000\r\n\r\n";
  files["request/head"] =
      "HEAD /%63urve/?a=b&c=%00 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-5,7-\r\n"
      "Expect: 100-continue\r\nConnection: close\r\n\r\n";
  const std::string type = "Content-Type: application/json\r\n";
  files["request/post"] = "POST /curve/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n" + type +
                          "Content-Length: 15\r\n\r\n{\"input\":\"0.5\"}";
  files["request/chunks"] = "POST /curve/explain HTTP/1.1\r\nHost: [::1]:80\r\n" + type +
                            "Transfer-Encoding: chunked\r\n\r\n"
                            "5\r\n{\"inp\r\nA\r\nut\":\"0.5\"}\r\n0\r\n\r\n";
}

}  // namespace
}  // namespace fovea::fuzz

int main(int argc, char** argv) {
  using namespace fovea::fuzz;
  if (argc != 2) return std::fprintf(stderr, "fuzz_seeds FOLDER\n"), 2;
  Files files;
  for (const auto add : {add_arrays, add_tables, add_texts, add_models, add_explanations,
                         add_problems, add_requests})
    add(files);
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = std::filesystem::path(argv[1]) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
}
