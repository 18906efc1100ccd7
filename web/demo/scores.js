// Every score of the library for keys in the plane: the number that the normaliser takes.

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const squared = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;
const logistic = (x) => 1 / (1 + Math.exp(-x));

// Weights that a system would learn; here they are given, so that each score has a form of its own.
const TURN = [[0, 1.2], [-1.2, 0]];  // bilinear: looks a quarter turn ahead
const OUT = [2, -1.5];               // additive: what the tanh layer is summed with
const PLACES = [0.5, 1, 0, -1, -0.5];  // location: a number for each place, whatever the key is

export const SCORES = {
  'dot product': (q, k) => dot(q, k),
  'scaled dot': (q, k) => dot(q, k) / Math.SQRT2,
  bilinear: (q, k) => dot(q, [dot(TURN[0], k), dot(TURN[1], k)]),
  additive: (q, k) => OUT[0] * Math.tanh(q[0] + k[0]) + OUT[1] * Math.tanh(q[1] + k[1]),
  'gated additive': (q, k) => OUT[0] * Math.tanh(q[0] + k[0]) * logistic(k[0]) + OUT[1] * Math.tanh(q[1] + k[1]) * logistic(k[1]),
  kernel: (q, k) => -0.5 * squared(q, k),
  cosine: (q, k) => 3 * dot(q, k) / Math.max(1e-9, Math.hypot(...q) * Math.hypot(...k)),
  'rank one': (q, k) => { const sum = q[0] - q[1] + k[0] + k[1]; return sum > 0 ? sum : 0.2 * sum; },
  location: (q, k, j) => PLACES[j] * (1 + q[0]),
  constant: () => 0,
};
