// Turns between tickets: in order, and over for everyone when a ticket fails. Each of these would
// wait for ever otherwise, so that a test that takes a minute is killed.
#include <gtest/gtest.h>

#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "engine/runtime/parallel.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using engine::Parallel;
using engine::Turn;

class TurnTest : public ::testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }
};

constexpr size_t kTickets = 40, kFailing = 7, kTakers = 4;

TEST_F(TurnTest, PassesInOrder) {
  Turn turn;
  turn.start_at(0);
  std::vector<size_t> order;
  engine::run_tickets(threads(kTakers), kTickets, [&](size_t, size_t ticket) {
    turn.wait_for(ticket);
    order.push_back(ticket);
    turn.pass_on();
  });
  ASSERT_EQ(order.size(), kTickets);
  for (size_t i = 0; i < kTickets; ++i) EXPECT_EQ(order[i], i);
}

// What fails is what is rethrown, not the end of the others' waits; those before it finish.
TEST_F(TurnTest, EndsWithTheFirstExceptionWhenATicketThrows) {
  for (int round = 0; round < 50; ++round) {
    Turn turn;
    turn.start_at(0);
    std::vector<size_t> order;
    const auto body = [&](size_t, size_t ticket) {
      if (ticket == kFailing) throw std::runtime_error("the seventh");
      turn.wait_for(ticket);
      order.push_back(ticket);
      turn.pass_on();
    };
    try {
      engine::run_tickets(threads(kTakers), kTickets, body, [&] { turn.give_up(); });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the seventh");
    }
    EXPECT_LE(order.size(), kFailing);
  }
}

// A turn that is passed on while another thread gives up stays given up.
TEST_F(TurnTest, StaysGivenUpWhenPassedOn) {
  Turn turn;
  turn.start_at(3);
  turn.give_up();
  turn.pass_on();
  EXPECT_THROW(turn.wait_for(4), Turn::GivenUp);
}

// Backward's units of 128 keys add to their queries' gradients in turns; here the second throws.
TEST_F(TurnTest, BackwardRethrowsWhatACustomScoreThrows) {
  cases::Built built = cases::build({.shape = {1, 1, 1, 70, 900, 8, 8}});
  const engine::Custom thrower{
      .value_f32 = [](const void*, float*, size_t, choice::RowPosition) {},
      .derivative_f32 =
          [](const void*, const float*, float*, size_t, choice::RowPosition at) {
            if (at.key == 128) throw std::runtime_error("no derivative here");
          }};
  built.problem.score.modifiers.push_back(thrower);
  engine::forward(built.problem, built.result, serial());
  for (const size_t workers : {1, 2, 4}) {
    try {
      engine::backward(built.problem, built.result, built.gradients, threads(workers));
      FAIL() << "nothing thrown by " << workers << " workers";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no derivative here");
    }
  }
}

}  // namespace
}  // namespace fovea
