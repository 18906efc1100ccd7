#include "train/interrupt.h"

namespace fovea::train {
namespace {

volatile std::sig_atomic_t asked = 0;

void note(int) { asked = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  asked = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_interrupt_);
  sigaction(SIGTERM, &action, &before_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
}

bool interrupted() { return asked != 0; }

}  // namespace fovea::train
