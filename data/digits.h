// Handwritten digits: MNIST's folder, or strokes drawn by a generator.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "data/pictures/idx.h"

namespace fovea::data {

struct DigitSets {
  Digits train, test;
};

// "28 x 28 pixels, 8 channels"
std::string size_of(const Digits& pictures);

// The folder of MNIST's four IDX files, gzip or not (`train-images-idx3-ubyte.gz`, …).
DigitSets read_mnist(const std::string& folder);
bool is_mnist(const std::string& folder);
// The same for pictures with channels: `train-images-idx4-ubyte`, …
DigitSets read_mnist_channels(const std::string& folder);
bool is_mnist_channels(const std::string& folder);
// Those four files: name -> bytes.
std::map<std::string, std::string> mnist_files(const DigitSets&);

// `count` digits of 28 x 28 pixels, classes in turn: strokes bent, tilted, scaled and drawn with a
// pen of varying width.
Digits generate_digits(int64_t count, uint64_t seed);
// The folder's digits, or generated ones where the path is empty.
DigitSets digits_of(const std::string& folder, int64_t train, int64_t test, uint64_t seed);

struct Move {
  int64_t down = 0, right = 0;  // pixels
};

// A pixel of 0 to 255 as the models see it: from 0 to 1, minus MNIST's mean and divided by MNIST's
// standard deviation.
float normalised_pixel(float pixel);
// The pixel that a normalised number came from.
uint8_t pixel_of(float normalised);
// One picture of normalised pixels. A moved picture is filled with black. `to` must be large enough.
void normalised_digit(const Digits& digits, int64_t which, float* to, Move move = {});

}  // namespace fovea::data
