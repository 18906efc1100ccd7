// The quick check of a plain call accepts nothing that the full checks refuse, and finds the same
// sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/call/overlap.h"
#include "engine/call/plain.h"

namespace fovea::engine {
namespace {

constexpr size_t kBytes = 1 << 16;

// One call over memory of its own; no number in it is read.
struct Call {
  std::vector<std::byte> memory = std::vector<std::byte>(6 * kBytes);
  int32_t lengths[8] = {};
  float parameter[64] = {};
  Problem problem;
  Result result;

  void* place(size_t n) { return memory.data() + n * kBytes; }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<int64_t>(values.size()) - 1)];
  }

  // Valid: dense or causal.
  Call plain() {
    Call call;
    const DType dtype =
        one_of({DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16});
    const int64_t batches = number(1, 3), key_heads = number(1, 3),
                  heads = key_heads * number(1, 3), queries = number(1, 5), keys = number(1, 5),
                  width = number(1, 9), value_width = number(1, 9);
    Problem& p = call.problem;
    p.query = View::of(call.place(0), dtype, {batches, heads, queries, width});
    p.key = View::of(call.place(1), dtype, {batches, key_heads, keys, width});
    p.value = View::of(call.place(2), dtype, {batches, key_heads, keys, value_width});
    call.result.output = View::of(call.place(3), dtype, {batches, heads, queries, value_width});
    switch (number(0, 3)) {
      case 0:
        break;
      case 1:
        p.structure = Dense{};
        break;
      case 2:
        p.structure = Causal{};
        break;
      default:
        p.structure = Causal{choice::Alignment::kBottomRight};
    }
    if (number(0, 3) == 0) p.score = Dot{.scale = 0.5};
    const DType arithmetic = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    if (number(0, 1))
      call.result.statistics =
          View::of(call.place(5), arithmetic, {batches, heads, queries, kStatistics});
    return call;
  }

  // Changes one thing, to something valid or not.
  void change(Call* call) {
    Problem& p = call->problem;
    Result& r = call->result;
    View* view = one_of({&p.query, &p.key, &p.value, &r.output, &r.statistics});
    const auto d = static_cast<size_t>(number(0, 3));
    switch (number(0, 18)) {
      case 0:
        view->size[d] = number(-1, 6);
        break;
      case 1:
        view->stride[d] = one_of<int64_t>({-7, -1, 0, 1, 2, 9, 640, 4096});
        break;
      case 2:
        view->rank = static_cast<int>(number(2, 4));
        break;
      case 3:
        view->dtype = one_of({DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kBool});
        break;
      case 4:
        view->data = nullptr;
        break;
      case 5:  // at another array, or near it
        view->data = call->memory.data() + static_cast<size_t>(number(0, 3)) * kBytes +
                     static_cast<size_t>(8 * number(0, 40));
        break;
      case 6:  // a transposed view
        std::swap(view->stride[1], view->stride[2]);
        break;
      case 7:
        p.key_lengths = View::of(call->lengths, DType::kInt32, {number(0, 4)});
        break;
      case 8:
        p.query_offset = one_of<int64_t>({-1, 1, int64_t{1} << 40});
        break;
      case 9:
        p.query_offset = View::of(call->lengths, DType::kInt32, {number(0, 4)});
        break;
      case 10:
        p.dropout_p = one_of({-0.5, 0.5, 1.0, std::numeric_limits<double>::quiet_NaN()});
        break;
      case 11:
        p.score = Dot{.scale = one_of({std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN(), -2.0})};
        break;
      case 12:
        p.score = Additive{.weight = View::of(call->parameter, DType::kFloat32, {number(0, 9)})};
        break;
      case 13:
        p.normaliser = number(0, 1)
                           ? Normaliser(Softmax{.sink = View::of(call->parameter, DType::kFloat32,
                                                                 {number(0, 9)})})
                           : Normaliser(TopK{.k = number(0, 2)});
        break;
      case 14:
        p.structure = number(0, 1) ? Structure(Causal{} & Window{.left = number(-2, 3)})
                                   : Structure(Window{.left = number(-2, 3)});
        break;
      case 15:  // the rows of the query and of its results
        p.query.size[2] = r.output.size[2] = r.statistics.size[2] = number(-1, 6);
        break;
      case 16:  // one type for all
        p.query.dtype = p.key.dtype = p.value.dtype = r.output.dtype =
            one_of({DType::kFloat32, DType::kInt32, DType::kBool});
        break;
      case 17:  // an input that goes backwards, from a place after the output's first
        p.key.stride[d] = -16;
        p.key.data = call->memory.data() + 3 * kBytes + 256;
        break;
      default:
        r.lse = View::of(call->place(4), p.query.dtype,
                         {p.query.size[0], p.query.size[1], p.query.size[2]});
    }
  }

 private:
  std::mt19937 random_;
};

template <class Number>
std::vector<Number> all(const ItemNumbers<Number>& numbers) {
  std::vector<Number> list;
  for (size_t i = 0; i < numbers.size(); ++i) list.push_back(numbers[i]);
  return list;
}

void expect_same(const Geometry& a, const Geometry& b) {
  EXPECT_EQ(a.storage, b.storage);
  EXPECT_EQ(a.batches, b.batches);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.key_heads, b.key_heads);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.query_width, b.query_width);
  EXPECT_EQ(a.key_width, b.key_width);
  EXPECT_EQ(a.value_width, b.value_width);
  EXPECT_EQ(a.max_queries, b.max_queries);
  EXPECT_EQ(a.max_keys, b.max_keys);
  EXPECT_EQ(a.packed, b.packed);
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_EQ(a.paged, b.paged);
  EXPECT_EQ(a.page_size, b.page_size);
  EXPECT_EQ(all(a.query_start), all(b.query_start));
  EXPECT_EQ(all(a.query_count), all(b.query_count));
  EXPECT_EQ(all(a.key_start), all(b.key_start));
  EXPECT_EQ(all(a.key_count), all(b.key_count));
  EXPECT_EQ(all(a.key_limit), all(b.key_limit));
  EXPECT_EQ(all(a.query_offset), all(b.query_offset));
}

// Whether the quick check accepts; if it does, the full checks must.
bool accepted(const Call& call) {
  Geometry quick;
  if (!resolve_plain(call.problem, call.result, &quick)) return false;
  EXPECT_NO_THROW({
    const Geometry full = resolve(call.problem);
    expect_same(quick, full);
    check_result(call.problem, full, call.result);
    check_places(call.problem, call.result);
  });
  return true;
}

TEST(Plain, ACallWithoutExtrasIsAccepted) {
  Draw draw(1);
  for (int n = 0; n < 2000; ++n) EXPECT_TRUE(accepted(draw.plain())) << "draw " << n;
}

TEST(Plain, WhatIsAcceptedPassesTheFullChecks) {
  Draw draw(2);
  int taken = 0, left = 0;
  for (int n = 0; n < 20000 && !HasFailure(); ++n) {
    Call call = draw.plain();
    for (int64_t changes = draw.number(1, 3); changes > 0; --changes) draw.change(&call);
    ++(accepted(call) ? taken : left);
    if (HasFailure()) ADD_FAILURE() << "draw " << n;
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(left, 10000);
}

}  // namespace
}  // namespace fovea::engine
