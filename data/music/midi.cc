#include "data/music/midi.h"

#include <array>

#include "fovea/error.h"

namespace fovea::data {
namespace {

constexpr int64_t kTicksAQuarter = 480, kTicksASixteenth = kTicksAQuarter / 4;
constexpr char kOrgan = 19, kVelocity = 80;
constexpr std::array<const char*, kVoices> kTracks = {"soprano", "alto", "tenor", "bass"};

void put(std::string& to, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    to += static_cast<char>(number >> shift & 0xFF);
}

// A number of any size: seven bits per byte, the last with a clear top bit.
void put_delta(std::string& to, uint64_t number) {
  int shift = 0;
  while (number >> (shift + 7) != 0) shift += 7;
  for (; shift > 0; shift -= 7) to += static_cast<char>((number >> shift & 0x7F) | 0x80);
  to += static_cast<char>(number & 0x7F);
}

class Track {
 public:
  // An event at a time in ticks, not before the last one.
  void event(int64_t time, const std::string& bytes) {
    put_delta(events_, static_cast<uint64_t>(time - now_));
    events_ += bytes;
    now_ = time;
  }
  void meta(int64_t time, char kind, const std::string& bytes) {
    std::string out = {'\xFF', kind};
    put_delta(out, bytes.size());
    event(time, out + bytes);
  }
  std::string chunk() {
    meta(now_, 0x2F, "");  // the end of the track
    std::string out = "MTrk";
    put(out, events_.size(), 4);
    return out + events_;
  }

 private:
  std::string events_;
  int64_t now_ = 0;
};

std::string voice_track(const Chorale& chorale, int64_t voice) {
  const char channel = static_cast<char>(voice);
  Track track;
  track.meta(0, 0x03, kTracks[static_cast<size_t>(voice)]);
  track.event(0, {static_cast<char>(0xC0 | channel), kOrgan});
  int64_t sounding = 0;
  const auto end_note = [&](int64_t time) {
    if (sounding > 0)
      track.event(time, {static_cast<char>(0x80 | channel), static_cast<char>(sounding), 0});
    sounding = 0;
  };
  for (int64_t t = 0; t < chorale.sixteenths(); ++t) {
    const int64_t token = chorale.tokens[static_cast<size_t>(t * kVoices + voice)];
    if (token == kHoldToken) continue;
    end_note(t * kTicksASixteenth);
    if ((sounding = pitch_of_token(token)) > 0)
      track.event(t * kTicksASixteenth,
                  {static_cast<char>(0x90 | channel), static_cast<char>(sounding), kVelocity});
  }
  end_note(chorale.sixteenths() * kTicksASixteenth);
  return track.chunk();
}

}  // namespace

std::string midi_of(const Chorale& chorale, int64_t quarters) {
  // A quarter's microseconds have three bytes.
  if (quarters < 4 || quarters > 1000)
    throw InvalidArgument("quarters: " + std::to_string(quarters) + ", expected 4 to 1000");
  std::string out = "MThd";
  put(out, 6, 4);
  put(out, 1, 2);
  put(out, kVoices + 1, 2);
  put(out, kTicksAQuarter, 2);
  Track tempo;
  std::string micros;
  put(micros, static_cast<uint64_t>(60'000'000 / quarters), 3);
  tempo.meta(0, 0x51, micros);
  out += tempo.chunk();
  for (int64_t voice = 0; voice < kVoices; ++voice) out += voice_track(chorale, voice);
  return out;
}

}  // namespace fovea::data
