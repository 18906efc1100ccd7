"""Makes a test of the code at the top of every page of docs/systems.

    extract_system_code.py DOCS_FOLDER OUT_FILE

Each page's code becomes a TEST with the names it speaks of declared before it, so that it compiles and runs. The file is rewritten
only when it changes.
"""

import pathlib
import re
import sys

BAGS = """\
  const at::Tensor offsets = torch::tensor({0, 3, 5}, torch::kInt32), one_each = torch::tensor({0, 1, 2}, torch::kInt32);
"""
SENTENCES = """\
  const at::Tensor lengths = torch::tensor({5, 3}, torch::kInt32);
  [[maybe_unused]] const auto same = [](const at::Tensor& x) { return x; };
"""
# The names a page's code speaks of: two bags of three and two items, two sentences of at most five words, width 8.
NAMES = {
    "alignment": SENTENCES
    + "  const auto W = same, U = same;\n  const at::Tensor states_before = torch::randn({2, 1, 4, 8}), source = torch::randn({2, 1, 5, 8}), v = torch::randn({8});\n",
    "bahdanau": SENTENCES
    + "  const auto W = same, U = same;\n  const at::Tensor state = torch::randn({2, 1, 1, 8}), states = torch::randn({2, 1, 5, 8}), v = torch::randn({8});\n",
    "beam-search": "  Alphabet model;\n  const std::vector<int64_t> max_lengths = {3, 2};\n",
    "convs2s": SENTENCES
    + "  const at::Tensor d = torch::randn({2, 1, 4, 8}), z = torch::randn({2, 1, 5, 8}), e = torch::randn({2, 1, 5, 8});\n",
    "cost": "  const at::Tensor x = torch::randn({1, 1, 6, 8});\n",
    "deep-sets": BAGS
    + "  const at::Tensor blank = torch::zeros({2, 1, 8}), phi = torch::randn({5, 1, 8});\n  torch::nn::Linear rho(8, 1);\n",
    "document-attention": BAGS
    + "  const auto W_v = [](const at::Tensor& x) { return x; }, W_h = W_v;\n  const at::Tensor v = torch::randn({2, 1, 8}), h = torch::randn({5, 1, 8}), w = torch::randn({8});\n",
    "dynamic-convolution": """\
  const int64_t reach = 1;
  const at::Tensor kernels = torch::randn({2, 4, 5, 3}).softmax(-1), zeros = torch::zeros({2, 4, 5, 3}), x = torch::randn({2, 4, 5, 8}), eye = torch::eye(3);
""",
    "fixed-attention": BAGS + "  const at::Tensor theta = torch::randn({2, 4, 8}), x = torch::randn({5, 1, 8}).expand({5, 4, 8});\n",
    "gat": """\
  const at::Tensor row_offsets = torch::tensor({0, 2, 4, 5}, torch::kInt32), columns = torch::tensor({0, 1, 1, 2, 2}, torch::kInt32);
  const at::Tensor query = torch::randn({3, 2, 1}), key = torch::randn({3, 2, 1}), value = torch::randn({3, 2, 8});
""",
    "dnc": """\
  const std::vector<at::Tensor> words = {torch::randn({2, 8}), torch::randn({2, 8})};
  const at::Tensor unit_key = torch::randn({2, 1, 1, 12}), unit_rows = torch::randn({2, 1, 16, 12}), beta = torch::ones({2, 1, 1, 1}),
                   identity = torch::eye(16).expand({2, 1, 16, 16});
""",
    "general": """\
  const at::Tensor query_offsets = torch::tensor({0, 1, 3}, torch::kInt32), key_offsets = torch::tensor({0, 3, 5}, torch::kInt32);
  const at::Tensor query = torch::randn({3, 1, 8}), key = torch::randn({5, 1, 8}), value = torch::randn({5, 1, 4}), weight = torch::randn({8});
""",
    "gnmt": SENTENCES
    + "  const auto W = same, U = same;\n  const at::Tensor bottom = torch::randn({2, 1, 1, 8}), states = torch::randn({2, 1, 5, 8}), v = torch::randn({8});\n",
    "gradient-masking": """\
  at::Tensor scores = torch::tensor({{{{2.0f, 0.0f}}}}, torch::requires_grad()), keys = torch::zeros({1, 1, 2, 1});
  at::Tensor x = torch::randn({1, 1, 2, 8}, torch::requires_grad()), gradient_at_o = torch::ones({1, 1, 1, 8});
""",
    "hierarchical": """\
  const at::Tensor one_each = torch::tensor({0, 1, 2}, torch::kInt32), sentences = torch::tensor({0, 3, 5}, torch::kInt32), documents = torch::tensor({0, 1, 2}, torch::kInt32);
  torch::nn::Linear W(8, 8), V(8, 8);
  const at::Tensor u_w = torch::randn({2, 1, 8}), u_s = torch::randn({2, 1, 8}), h = torch::randn({5, 1, 8}), g = torch::randn({2, 1, 8});
""",
    "image-to-set": """\
  torch::nn::Linear W_K(8, 8), W_V(8, 8), W(8, 8);
  const at::Tensor slots = torch::randn({2, 1, 6, 8}), regions = torch::randn({2, 1, 49, 8}), w = torch::randn({6, 8}), b = torch::randn({6});
""",
    "inverse-cooking": """\
  torch::nn::Linear W_Q(8, 8), W_K(8, 8), W_V(8, 8);
  const at::Tensor x = torch::randn({2, 1, 5, 8}), regions = torch::randn({2, 1, 49, 8}), ingredients = torch::randn({2, 1, 3, 8}), lengths = torch::tensor({52, 50}, torch::kInt32);
""",
    "luong": SENTENCES + "  const at::Tensor state = torch::randn({2, 1, 1, 8}), states = torch::randn({2, 1, 5, 8}), W = torch::randn({8, 8});\n",
    "memory-network": """\
  const std::vector<std::vector<int64_t>> lines = {{5, 6, 7}, {8, 6, 9}};
  const std::vector<fovea::nn::Asked> asked = {{lines, {4, 5}, {}}, {{}, {4, 8}, {}}};
  const at::Tensor one_each = torch::tensor({0, 1, 2}, torch::kInt32), offsets = torch::tensor({0, 2, 2}, torch::kInt32);
  const at::Tensor u = torch::randn({2, 1, 8}), m = torch::randn({2, 1, 8}), c = torch::randn({2, 1, 8});
""",
    "mil": BAGS + "  const at::Tensor zero = torch::zeros({2, 1, 8}), key = torch::randn({5, 1, 8}), h = torch::randn({5, 1, 8}), w = torch::randn({4});\n",
    "mixture-of-experts": """\
  const at::Tensor row_offsets = torch::tensor({0, 2, 4, 6}, torch::kInt32), columns = torch::tensor({0, 3, 1, 4, 2, 5}, torch::kInt32);
  const at::Tensor x = torch::randn({3, 8}), one = torch::ones({3, 1, 1}), score = torch::randn({6, 1, 1}), answers = torch::randn({6, 1, 8});
""",
    "multi-head": SENTENCES + "  const at::Tensor query = torch::randn({2, 1, 24}), words = torch::randn({2, 5, 24});\n",
    "nadaraya-watson": """\
  const at::Tensor x = torch::randn({1, 1, 5, 2}), x_query = x, y = torch::randn({1, 1, 5, 1}), h = torch::ones({1});
  const at::Tensor not_itself = torch::eye(5).logical_not();
""",
    "bert": "  const at::Tensor query = torch::randn({5, 2, 8}), key = torch::randn({5, 2, 8}), value = torch::randn({5, 2, 8}), offsets = torch::tensor({0, 2, 5}, torch::kInt32);\n",
    "next-word": "  const at::Tensor query = torch::randn({1, 4, 5, 8}), key = torch::randn({1, 2, 5, 8}), value = torch::randn({1, 2, 5, 8}), last = query.narrow(2, 4, 1);\n",
    "ntm": """\
  const std::vector<at::Tensor> words = {torch::randn({2, 7}), torch::randn({2, 7})};
  const at::Tensor w = torch::rand({2, 1, 1, 16}), M = torch::randn({2, 1, 16, 12});
""",
    "pooling": BAGS
    + "  const fovea::Structure bag = fovea::Ragged{one_each, offsets};\n  const at::Tensor blank = torch::zeros({2, 1, 8}), x = torch::randn({5, 1, 8});\n  const at::Tensor one = torch::ones({2, 8, 1}), x_c = x.view({5, 8, 1});\n",
    "scaled-dot-product": "  const at::Tensor x = torch::randn({1, 1, 5, 8}), w_q = torch::randn({8, 4}), w_k = torch::randn({8, 4}), w_v = torch::randn({8, 4});\n",
    "seq2seq": SENTENCES
    + "  fovea::nn::Recurrent encoder(fovea::nn::RecurrentOptions{.input = 8, .width = 8, .bidirectional = false});\n  const at::Tensor words = torch::randn({2, 5, 8});\n",
    "set-outlier": BAGS
    + "  const fovea::Structure set = fovea::Ragged{one_each, offsets};\n  const at::Tensor blank = torch::zeros({2, 1, 8}), x = torch::randn({5, 1, 8}), one = torch::ones({2, 1, 1}), score = torch::randn({5, 1, 1});\n",
    "sparse-normalisers": "  const at::Tensor query = torch::randn({1, 2, 5, 8}), key = torch::randn({1, 2, 5, 8}), value = torch::randn({1, 2, 5, 8}), scores = torch::randn({2, 3}), classes = torch::tensor({0, 2});\n",
    "squeeze-excitation": """\
  const int64_t pixels = 20;
  const at::Tensor u = torch::randn({2, 6, 5, 4});
  const at::Tensor one_each = torch::arange(13, torch::kInt32), itself = torch::arange(12, torch::kInt32);
  torch::nn::Linear W1(6, 2), W2(2, 6);
""",
    "show-attend-tell": """\
  const at::Tensor a = torch::randn({2, 1, 49, 8}), w = torch::randn({4}), y = torch::randn({2, 1, 1, 3}), beta = torch::rand({2, 1, 1, 1});
  torch::nn::Linear W_h(6, 4), W_a(8, 4), E(3, 5);
  at::Tensor h = torch::randn({2, 1, 1, 6});
  auto lstm = [cell = torch::nn::LSTMCell(13, 6)](const at::Tensor& x, const at::Tensor& h) mutable {
    return std::get<0>(cell(x.flatten(0, 2), std::tuple(h.flatten(0, 2), h.flatten(0, 2)))).view({2, 1, 1, 6});
  };
""",
    "stacked-attention": """\
  const at::Tensor v = torch::randn({2, 1, 16, 8});
  std::vector<torch::nn::Linear> W_Q = {torch::nn::Linear(8, 4), torch::nn::Linear(8, 4)}, W_I = W_Q;
  const std::vector<at::Tensor> w = {torch::randn({4}), torch::randn({4})};
  const at::Tensor v_Q = torch::randn({2, 1, 1, 8});
""",
    "relative-positions": """\
  const at::Tensor query = torch::randn({1, 2, 5, 16}), key = torch::randn({1, 2, 5, 16}), value = torch::randn({1, 2, 5, 16});
  const at::Tensor last = query.narrow(2, 4, 1);
""",
    "sparse-patterns": "  const at::Tensor query = torch::randn({1, 2, 30, 8}), key = torch::randn({1, 2, 30, 8}), value = torch::randn({1, 2, 30, 8});\n",
    "structured-attention": """\
  const at::Tensor lengths = torch::tensor({5, 3}), arcs = torch::randn({2, 5, 5}), unary = torch::randn({2, 5, 2}), b = torch::randn({2, 2});
  const at::Tensor x = torch::randn({2, 1, 5, 8}), none = torch::zeros({2, 1, 5, 1});
""",
    "transformer": "  const at::Tensor query = torch::randn({1, 2, 5, 8}), key = torch::randn({1, 2, 5, 8}), value = torch::randn({1, 2, 5, 8});\n",
    "word2vec": BAGS + "  const at::Tensor blank = torch::zeros({2, 1, 1}), none = torch::zeros({5, 1, 1}), phi = torch::randn({5, 1, 8});\n",
    "word-sum": BAGS + "  const at::Tensor blank = torch::zeros({2, 1, 8}), x = torch::randn({5, 1, 8});\n",
}
CODE = re.compile(r"\A# .*?```cpp\n(.*?)\n```", re.DOTALL)


def main():
    docs, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tests = []
    for page in sorted((docs / "systems").glob("*.md")):
        code = CODE.search(page.read_text())
        if not code or page.stem not in NAMES:
            sys.exit(f"{page}: no code at its top, or tests/docs/extract_system_code.py declares no names for it")
        name = "".join(word.capitalize() for word in page.stem.split("-"))
        body = "\n".join("  " + line if line else "" for line in code[1].split("\n"))
        used = re.findall(r"^auto +(\w+) +=", code[1], re.MULTILINE)
        check = "".join(f"  EXPECT_TRUE(all_finite({result}));\n" for result in used)
        tests.append(f"TEST(SystemCode, {name}) {{\n{NAMES[page.stem]}{body}\n{check}}}\n")
    text = "\n".join(tests)
    if not out.exists() or out.read_text() != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


main()
