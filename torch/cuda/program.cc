#include "torch/cuda/program.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "torch/composed/block.h"
#include "torch/cuda/structure_text.h"
#include "torch/cuda/tilings/lists.h"
#include "torch/cuda/tilings/panels.h"
#include "torch/engine_call.h"

namespace fovea::cuda {
namespace {

// A stage: the text that holds it and what it is called there.
struct Stage {
  std::string text, type;
};

const char* type_name(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "double";
    case at::kBFloat16:
      return "BFloat16";
    case at::kHalf:
      return "Half";
    default:
      return "float";
  }
}

// A user's expressions as the class that texts/modifiers/custom.h wants. Each has lines of its own, so
// that the compiler's messages name one, and a comment in one ends there.
std::string own_function(const std::string& name, const Custom& custom, Pass pass) {
  const auto function = [](const char* called, const char* expression) {
    return std::string("static T ") + called +
           "(const T score, const int batch, const int head, const int query, const int key) {\n"
           "const T infinity = infinity_of(T());\nreturn static_cast<T>(\n" +
           expression + "\n);\n}\n";
  };
  std::string text = "struct " + name + " {\n" + function("value", custom.device_value);
  if (pass != Pass::kForward) text += function("derivative", custom.device_derivative);
  return text + "};";
}

std::string number(double x) {
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific)
          .ptr;
  return {buffer.data(), end};
}

// Bilinear and cosine arrive as dot, kernels without their metric.
Stage score_stage(const Choices& choices) {
  const bool log = composed::face_of(choices) == composed::Face::kLog;
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> Stage {
        if constexpr (std::is_same_v<Kind, Additive>) {
          return {"additive",
                  kind.activation == Activation::kTanh ? "Additive" : "AdditiveLeakyRelu"};
        } else if constexpr (std::is_same_v<Kind, GatedAdditive>) {
          return {"gated_additive", "GatedAdditive"};
        } else if constexpr (std::is_same_v<Kind, Kernel>) {
          return {"kernel", "Kernel<static_cast<KernelName>(" +
                                std::to_string(static_cast<int>(kind.name)) + "), " +
                                (log ? "true" : "false") + ">"};
        } else if constexpr (std::is_same_v<Kind, RankOne>) {
          return {"rank_one", "RankOne"};
        } else if constexpr (std::is_same_v<Kind, Location>) {
          return {"location", "Location"};
        } else if constexpr (std::is_same_v<Kind, Constant>) {
          return {"constant", "Constant"};
        } else {
          return {"dot", "Dot"};
        }
      },
      choices.score.kind);
}

Stage modifier_stage(const Modifier& modifier) {
  return std::visit(
      []<class Kind>(const Kind&) -> Stage {
        if constexpr (std::is_same_v<Kind, Bias>) return {"bias", "Bias"};
        if constexpr (std::is_same_v<Kind, Alibi>) return {"alibi", "Alibi"};
        if constexpr (std::is_same_v<Kind, Relative>) return {"relative", "Relative"};
        if constexpr (std::is_same_v<Kind, Custom>) return {"custom", "Custom"};
        return {"soft_cap", "SoftCap"};
      },
      modifier);
}

Stage normaliser_stage(const Choices& choices) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) -> Stage {
        if constexpr (std::is_same_v<Kind, Softmax>)
          return {"softmax", kind.sink.defined() ? "SoftmaxWithSink" : "Softmax"};
        if constexpr (std::is_same_v<Kind, KernelRatio>) {
          if (composed::face_of(choices) == composed::Face::kLog) return {"softmax", "Softmax"};
          return {"kernel_ratio", "KernelRatio"};
        }
        if constexpr (std::is_same_v<Kind, Unnormalised>) return {"unnormalised", "Unnormalised"};
        if constexpr (std::is_same_v<Kind, Uniform>) return {"uniform", "Uniform"};
        if constexpr (std::is_same_v<Kind, Sigmoid>) return {"sigmoid", "Sigmoid"};
        if constexpr (std::is_same_v<Kind, Sparsemax>) return {"sparsemax", "Sparsemax"};
        if constexpr (std::is_same_v<Kind, Entmax>)
          return {"entmax", kind.alpha_tensor.defined() ? "EntmaxTrained" : "Entmax"};
        if constexpr (std::is_same_v<Kind, TopK>) return {"top_k", "TopK"};
        if constexpr (std::is_same_v<Kind, Hard>)
          return {"hard", kind.sample ? "HardSampled" : "Hard"};
        return {};
      },
      choices.normaliser);
}

// Rows that tensor cores can load: whole pieces of 16 bytes.
bool has_whole_pieces(const at::Tensor& x) {
  constexpr int64_t kPiece = 8, kBytes = 16;
  bool whole = reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kBytes == 0 &&
               x.size(-1) % (2 * kPiece) == 0 && x.size(-1) <= 128;
  for (int64_t d = 0; d + 1 < x.dim(); ++d)
    whole = whole && (x.size(d) == 1 || x.stride(d) % kPiece == 0);
  return whole;
}

// Dot products of 16-bit rows under a normaliser of one pass, or one whose threshold lists find.
bool on_tensor_cores(const Call& call, const Stage& score, const Stage& normaliser, Pass pass) {
  const auto type = call.query.scalar_type();
  if (type != at::kBFloat16 && type != at::kHalf) return false;
  const bool dot = std::holds_alternative<Dot>(call.choices.score.kind) && score.text == "dot";
  const bool one_pass = normaliser.text == "softmax" || normaliser.text == "sigmoid";
  if (!dot || (!one_pass && !lists_decline(call).empty())) return false;
  if (find_structure<Graph>(call.choices.structure)) return false;
  for (const auto& modifier : call.choices.score.modifiers) {
    // Kernels on tiles have what relative positions add to values, and the gradient of a bias.
    const auto* relative = std::get_if<Relative>(&modifier);
    if ((relative && relative->value_table.defined()) ||
        (pass == Pass::kBackwardWithBias && std::holds_alternative<Bias>(modifier)))
      return false;
  }
  return has_whole_pieces(call.query) && has_whole_pieces(call.key) && has_whole_pieces(call.value);
}

// drivers/mma/mma_decode.h: the queries of all heads that share a key are rows of one tile.
bool is_decoding(const Call& call) {
  constexpr int64_t kRows = 16;
  return !is_packed(call.choices.structure) &&
         call.query.size(2) * (call.query.size(1) / key_heads(call)) <= kRows;
}

// drivers/points/points.h: kernels of points of few dimensions with few values, all pairs.
bool has_points(const Call& call, const Stage& normaliser, int64_t width) {
  constexpr int64_t kMost = 4;
  const bool one_pass = normaliser.type == "Softmax" || normaliser.type == "KernelRatio" ||
                        normaliser.type == "Unnormalised";
  return std::holds_alternative<Kernel>(call.choices.score.kind) && one_pass && width <= kMost &&
         call.value.size(-1) <= kMost && call.dropout_p == 0 &&
         call.choices.score.modifiers.empty() && !is_packed(call.choices.structure) &&
         std::all_of(call.choices.structure.all_of.begin(), call.choices.structure.all_of.end(),
                     [](const auto& part) { return std::holds_alternative<Dense>(part); });
}

template <class Kind>
bool has_modifier(const Call& call) {
  const auto& modifiers = call.choices.score.modifiers;
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [](const auto& modifier) { return std::holds_alternative<Kind>(modifier); });
}

// drivers/tiles/merge.h: scores that cost more than all else are computed once for all columns of the
// output, and blocks share out the keys. Values of up to 8 columns are summed beside the scores.
bool is_parted(const Call& call, const Stage& score, const Program& program) {
  constexpr int64_t kNarrow = 8;
  const bool adds_values = has_modifier<Relative>(call);
  return score.type == "Additive" && arithmetic_type(call.query) != at::kDouble &&
         !program.has_threshold && !program.on_graph && !adds_values &&
         call.value.size(-1) > kNarrow;
}

// drivers/panels/panel_tile.h: dot products of rows of float32 or float64, which need copies that do not wait.
bool has_panels(const Call& call, const Stage& score, at::ScalarType operand, int64_t width,
                Pass pass, const std::string& architecture) {
  constexpr int64_t kMost = 64;
  const auto type = call.value.scalar_type();
  if (score.text != "dot" || operand != type || (type != at::kFloat && type != at::kDouble))
    return false;
  // Blocks of float64 take more memory than other devices have.
  const bool fits = type == at::kFloat ? std::stoi(architecture.substr(3)) >= 80
                                       : architecture == "sm_80" || architecture == "sm_90a";
  return fits && width <= kMost && call.value.size(-1) <= kMost &&
         !find_structure<Graph>(call.choices.structure) &&
         !find_structure<Paged>(call.choices.structure) &&
         composed::face_of(call.choices) != composed::Face::kValue &&
         !has_modifier<Relative>(call) &&
         !(pass == Pass::kBackwardWithBias && has_modifier<Bias>(call));
}

constexpr int64_t kPanelColumns = 64;

// How a block on tensor cores divides its work: constants of drivers/mma, found by trying them on
// an H200. `resident`: blocks that a multiprocessor must hold.
struct Tiling {
  int warps = 4;
  bool panels = false;                  // rows lie in panels (texts/wgmma.h)
  int m = 2, other = 64, resident = 1;  // 16 m queries a warp
  int query_m = 2, keys = 32, key_step = 32, query_resident = 1;   // the query's gradient
  int key_m = 1, queries = 64, query_step = 32, key_resident = 1;  // the key's
  int places = 2;  // of tiles of the other side, backward
};

// Whether rows lie in panels, for products of groups of warps, which one architecture has.
bool in_panels(const Call& call, int64_t width, const std::string& architecture) {
  const bool fits = width == kPanelColumns || width == 2 * kPanelColumns;
  return fits && call.value.size(-1) == width && architecture == "sm_90a";
}

// Of rows in panels, for groups of four warps.
Tiling tiling_of_panels(const Call& call, int64_t width) {
  const bool reads = has_modifier<Bias>(call) || has_modifier<Relative>(call);  // into registers
  const Structure& structure = call.choices.structure;
  Tiling tiling;
  tiling.panels = true;
  tiling.m = tiling.query_m = 1;
  tiling.keys = tiling.key_step = tiling.query_step = 64;
  if (width == kPanelColumns) {
    const bool few =
        reads || find_structure<Window>(structure) || find_structure<Documents>(structure);
    tiling.other = few ? 64 : 128;
    tiling.resident = few ? 3 : 2;
    tiling.query_resident = reads ? 2 : 3;
    tiling.key_resident = 2;
    tiling.places = 3;
  } else if (find_structure<Blocks>(structure) && !reads) {
    tiling.warps = 8;
    tiling.other = 128;
    tiling.places = 3;
  } else {
    tiling.resident = tiling.query_resident = tiling.key_resident = 2;
    tiling.key_step = tiling.query_step = reads ? 32 : 64;
  }
  return tiling;
}

Tiling tiling_of(const Call& call, int64_t width, bool decodes, const std::string& architecture) {
  Tiling tiling;
  if (decodes) return tiling;
  if (in_panels(call, width, architecture)) return tiling_of_panels(call, width);
  if (width <= 64 && call.value.size(-1) <= 64) {
    tiling.m = tiling.query_m = 1;
    tiling.resident = tiling.query_resident = 3;
    tiling.keys = tiling.key_step = tiling.query_step = 64;
  } else if (call.choices.score.modifiers.empty()) {  // then there are registers to spare
    tiling.query_m = 1;
    tiling.query_resident = 3;
  }
  return tiling;
}

std::string declared(const Tiling& t) {
  std::string text = "constexpr int kMmaWarps = " + std::to_string(t.warps);
  const auto add = [&](const char* name, int n) {
    text += std::string(", ") + name + " = " + std::to_string(n);
  };
  add("kForwardM", t.m);
  add("kForwardKeys", t.other);
  add("kResident", t.resident);
  add("kQueryM", t.query_m);
  add("kKeys", t.keys);
  add("kKeyStep", t.key_step);
  add("kQueryResident", t.query_resident);
  add("kKeyM", t.key_m);
  add("kQueries", t.queries);
  add("kQueryStep", t.query_step);
  add("kKeyResident", t.key_resident);
  add("kPlaces", t.places);
  return text + ";";
}

// The memory of a block: drivers/mma/mma_decode.h, mma_forward.h, mma_backward.h, mma_backward_key.h.
struct TensorCoreBytes {
  int64_t decode, forward, query, key;
};
TensorCoreBytes tensor_core_bytes(int64_t width, int64_t value_width, const Tiling& t) {
  constexpr int64_t kNumber = 2, kRowData = 40, kNumbers = 8, kRandom = 8, kFlag = 4;
  const int64_t pad = t.panels ? 0 : 8;
  const int64_t row = kNumber * (width + pad), value_row = kNumber * (value_width + pad),
                both = row + value_row, own = 16 * t.warps, covers = 32 * t.warps;
  const auto whole = [&](int64_t bytes) {
    constexpr int64_t kPanel = 1024;  // bytes, where panels start and a block's memory ends
    return t.panels ? (bytes + kPanel - 1) / kPanel * kPanel : bytes;
  };
  return {16 * (row + kRowData) + 64 * (2 * both + kFlag),
          whole(own * t.m * (row + kRandom) + t.other * (2 * both + kFlag) + covers),
          whole(own * t.query_m * (both + kNumbers + kRandom) + t.keys * (t.places * both + kFlag) +
                covers),
          whole(own * t.key_m * both +
                t.queries * (t.places * (both + kNumbers) + kRandom + kFlag) + covers)};
}

// Lanes that share a row of a graph, eight numbers each; normalisers that look for a threshold read
// rows a warp at a time.
int graph_lanes(int64_t features, int64_t value_width, bool has_threshold) {
  int lanes = has_threshold ? 32 : 4;
  while (lanes < 32 && 8 * lanes < std::max(features, value_width)) lanes *= 2;
  return lanes;
}

class Text {
 public:
  void include(const std::string& name) {
    text_ += "#include \"torch/cuda/texts/" + name + ".h\"\n";
  }
  void declare(const std::string& line) { text_ += "namespace fovea::cuda { " + line + " }\n"; }
  void define(const std::string& name) { text_ += "#define " + name + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

int64_t key_heads(const Call& call) {
  return call.key.size(find_structure<Paged>(call.choices.structure) ? 2 : 1);
}

int64_t key_count(const Call& call) {
  if (const auto* paged = find_structure<Paged>(call.choices.structure))
    return paged->table.size(1) * call.key.size(1);
  return call.key.size(is_packed(call.choices.structure) ? 0 : 2);
}

Program program_of(const Call& call, at::ScalarType operand, int64_t width, Pass pass,
                   const std::string& architecture) {
  Program program;
  const bool forward = pass == Pass::kForward;
  const Choices& choices = call.choices;
  const at::ScalarType arithmetic = arithmetic_type(call.query);
  const bool wide = arithmetic == at::kDouble;
  program.tile = wide ? 32 : 64;
  program.chunk = wide ? 64 : 128;
  program.on_graph = find_structure<Graph>(choices.structure) != nullptr;
  const Stage score = score_stage(choices), normaliser = normaliser_stage(choices);
  program.has_threshold = normaliser.text == "sparsemax" || normaliser.text == "entmax" ||
                          normaliser.text == "top_k" || normaliser.text == "hard";
  const bool direct = score.text == "location" || score.text == "constant";
  const bool gated = score.text == "gated_additive";
  program.features = direct ? 0 : gated ? width / 2 : width;
  program.feature_chunk = gated ? program.chunk / 2 : program.chunk;
  const auto truth = [](bool x) { return x ? "true" : "false"; };

  Text text;
  Tiling tiling;
  PanelTiling panels{};
  program.on_tensor_cores = on_tensor_cores(call, score, normaliser, pass);
  program.has_lists = program.on_tensor_cores && program.has_threshold;
  const bool lists_in_panels = width == 2 * kPanelColumns && !has_modifier<Relative>(call) &&
                               in_panels(call, width, architecture);
  const ListsTiling lists = lists_tiling(lists_in_panels);
  if (program.has_lists) {
    const auto bytes =
        lists_bytes(width, call.value.size(-1), choices.score.modifiers.size(), lists);
    program.threads = static_cast<unsigned>(32 * lists.warps);
    program.own = program.key_own = 16 * lists.warps;
    program.shared_bytes =
        static_cast<unsigned>(forward ? bytes.forward : std::max(bytes.query, bytes.key));
    text.define("FOVEA_FAST");
  } else if (program.on_tensor_cores) {
    program.decodes = forward && is_decoding(call);
    tiling = tiling_of(call, width, program.decodes, architecture);
    program.threads = static_cast<unsigned>(32 * tiling.warps);
    program.own = 16 * tiling.warps * (forward ? tiling.m : tiling.query_m);
    program.key_own = 16 * tiling.warps * tiling.key_m;
    program.merged_rows = 4;
    const auto bytes = tensor_core_bytes(width, call.value.size(-1), tiling);
    program.shared_bytes = static_cast<unsigned>(program.decodes ? bytes.decode
                                                 : forward       ? bytes.forward
                                                           : std::max(bytes.query, bytes.key));
    if (!forward) program.query_shared_bytes = static_cast<unsigned>(bytes.query);
    text.define("FOVEA_FAST");
  } else if (has_points(call, normaliser, width)) {
    program.on_points = true;
    program.threads = 128;
    program.own = program.key_own = 1024;
    program.merged_rows = 128;
    if (!wide) text.define("FOVEA_FAST");
  } else if (has_panels(call, score, operand, width, pass, architecture)) {
    program.on_panels = true;
    panels = panel_tiling(width, call.value.size(-1), wide, forward, program.has_threshold);
    program.threads = static_cast<unsigned>(panels.threads);
    program.resident = panels.resident;
    program.own = program.key_own = panels.own;
    program.shared_bytes = panels.bytes;
    program.scratch_arrays = 2;
    if (!wide) text.define("FOVEA_FAST");
  } else {
    program.own = program.key_own = program.tile;
  }
  text.include("base");
  text.declare("using T = " + std::string(type_name(arithmetic)) + "; using Operand = " +
               type_name(operand) + "; using Value = " + type_name(call.value.scalar_type()) + ";");
  program.is_parted = forward && is_parted(call, score, program);
  if (program.is_parted) program.merged_rows = 8;
  text.declare("constexpr int kTile = " + std::to_string(program.tile) + ", kChunk = " +
               std::to_string(program.chunk) + ", kWidth = " + std::to_string(direct ? 0 : width) +
               ", kValueWidth = " + std::to_string(call.value.size(-1)) + ";");
  text.declare(std::string("constexpr bool kPacked = ") + truth(is_packed(choices.structure)) +
               ", kPaged = " + truth(find_structure<Paged>(choices.structure)) +
               ", kDropout = " + truth(call.dropout_p > 0) +
               ", kSampled = " + truth(normaliser.type == "HardSampled") + ", kValueFace = " +
               truth(composed::face_of(choices) == composed::Face::kValue) + ";");
  if (const auto* additive = std::get_if<Additive>(&choices.score.kind))
    text.declare("constexpr T kAdditiveSlope = " + number(additive->negative_slope) + ";");
  text.include("warp");
  text.include("scores/base");
  text.include("scores/" + score.text);
  text.include("modifiers/chain");
  std::string modifiers;
  int own = 0;
  program.name = score.text;
  for (const auto& modifier : choices.score.modifiers) {
    Stage stage = modifier_stage(modifier);
    text.include("modifiers/" + stage.text);
    if (const auto* custom = std::get_if<Custom>(&modifier)) {
      const std::string name = "Own" + std::to_string(own++);
      text.declare(own_function(name, *custom, pass));
      stage.type += "<" + name + ">";
    }
    modifiers += (modifiers.empty() ? "" : ", ") + stage.type;
    program.name += "+" + stage.text;
  }
  text.include("normalisers/base");
  if (program.has_threshold) text.include("normalisers/threshold");
  text.include("normalisers/" + normaliser.text);
  program.name += ", " + normaliser.text + ", ";
  text.include("structures/all");
  const StructureText structure = text_of(choices.structure);
  for (const std::string& name : structure.texts) text.include("structures/" + name);
  program.name += structure.name.empty() ? (program.on_graph ? "graph" : "dense") : structure.name;
  if (program.on_graph && !structure.name.empty()) program.name += " & graph";
  program.name += std::string(", ") + type_name(operand) + " " + std::to_string(width) + ", " +
                  type_name(call.value.scalar_type()) + " " + std::to_string(call.value.size(-1));
  text.declare("using Score = " + score.type + "; using Modifiers = Chain<" + modifiers +
               ">; using Normaliser = " + normaliser.type +
               "; using Structure = " + structure.type + ";");
  text.include("pair");
  if (program.on_tensor_cores) {
    text.declare("constexpr int kSharedBytes = " + std::to_string(program.shared_bytes) + ";");
    text.declare(program.has_lists ? declared(lists) : declared(tiling));
    text.declare(std::string("constexpr bool kPanels = ") +
                 truth(program.has_lists ? lists.panels : tiling.panels) + ";");
    text.include("mma");
    text.include("wgmma");
  }
  if (program.on_panels) {
    text.declare(declared(panels));
    text.include("mma");
  }
  if (program.on_graph) {
    program.lanes = graph_lanes(program.features, call.value.size(-1), program.has_threshold);
    text.declare("constexpr int kGroup = " + std::to_string(program.lanes) + ";");
  }
  struct Driver {
    std::string base, prefix;  // of the texts beside it
  };
  const bool on_tiles =
      !program.on_graph && !program.on_tensor_cores && !program.on_points && !program.on_panels;
  const Driver driver =
      program.on_graph          ? Driver{"drivers/graph/graph", "drivers/graph/graph_"}
      : program.has_lists       ? Driver{"drivers/mma/mma_tile", "drivers/mma/mma_threshold_"}
      : program.on_tensor_cores ? Driver{"drivers/mma/mma_tile", "drivers/mma/mma_"}
      : program.on_points       ? Driver{"drivers/points/points", "drivers/points/points_"}
      : program.on_panels       ? Driver{"drivers/panels/panel_tile", "drivers/panels/panel_"}
                                : Driver{"drivers/tiles/tile", "drivers/tiles/"};
  text.include(driver.base);
  if (program.on_tensor_cores && !program.decodes) text.include("drivers/mma/mma_mask");
  if (program.has_lists)
    text.include("drivers/mma/mma_lists");
  else if (program.on_tensor_cores && !forward)
    text.include("drivers/mma/mma_pairs");
  if (on_tiles && score.type == "Additive") text.include("drivers/tiles/factored");
  if (on_tiles && forward)
    text.declare(std::string("constexpr bool kParted = ") + truth(program.is_parted) + ";");
  if (program.on_tensor_cores && forward && !program.decodes && !program.has_lists)
    text.include("drivers/mma/mma_rows");
  if (tiling.panels && forward)
    text.include("drivers/mma/wgmma_forward");
  else
    text.include(driver.prefix + (program.decodes ? "decode" : forward ? "forward" : "backward"));
  if (program.is_parted) text.include("drivers/tiles/merge");
  if (!forward && !program.on_graph) text.include(driver.prefix + "backward_key");
  if (pass == Pass::kBackwardWithBias && !program.on_graph)
    text.include("drivers/tiles/backward_bias");
  program.text = text.take();
  return program;
}

}  // namespace fovea::cuda
