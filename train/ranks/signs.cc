#include "train/ranks/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace fovea::train {
namespace {

std::string key_of(int rank) { return fmt::format("sign/{}", rank); }

void give(c10d::Store& store, int rank, int64_t number) {
  const std::string text = std::to_string(number);
  store.set(key_of(rank), std::vector<uint8_t>(text.begin(), text.end()));
}

}  // namespace

// The store answers every rank about every rank, so many ranks ask less often.
std::chrono::milliseconds Signs::pause(int size) {
  return std::chrono::milliseconds(std::max(1000, 20 * size));
}

void Signs::first(c10d::Store& store, int rank) { give(store, rank, 0); }

Signs::Signs(c10::intrusive_ptr<c10d::Store> store, int rank, int size) {
  shared_->fresh.assign(static_cast<size_t>(size), Clock::now());
  thread_ = std::thread([shared = shared_, store = std::move(store), rank, size] {
    try {
      watch(shared, *store, rank, size);
    } catch (const std::exception&) {
      const std::lock_guard lock(shared->mutex);
      shared->gone = true;
    }
    const std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  });
}

Signs::~Signs() {
  {
    std::unique_lock lock(shared_->mutex);
    shared_->stop = true;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, std::chrono::seconds(1), [&] { return shared_->ended; });
    if (!shared_->ended) {
      thread_.detach();
      return;
    }
  }
  thread_.join();
}

void Signs::watch(const std::shared_ptr<Shared>& shared, c10d::Store& store, int rank, int size) {
  std::vector<std::string> keys;
  for (int r = 0; r < size; ++r) keys.push_back(key_of(r));
  std::vector<std::vector<uint8_t>> before(keys.size());
  for (int64_t number = 1;; ++number) {
    give(store, rank, number);
    const auto now = store.multiGet(keys);
    std::unique_lock lock(shared->mutex);
    shared->read = Clock::now();
    ++shared->reads;
    for (size_t r = 0; r < keys.size(); ++r)
      if (now[r] != before[r]) shared->fresh[r] = shared->read;
    before = now;
    if (shared->changed.wait_for(lock, pause(size), [&] { return shared->stop; })) return;
  }
}

int64_t Signs::reads() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->reads;
}

bool Signs::store_is_gone() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->gone;
}

double Signs::quiet(int rank) const {
  const std::lock_guard lock(shared_->mutex);
  return std::chrono::duration<double>(shared_->read - shared_->fresh[static_cast<size_t>(rank)])
      .count();
}

}  // namespace fovea::train
