// Every normaliser of the library, over the scores of the keys a query may see.

function softmax(e) {
  const top = Math.max(...e), exps = e.map((x) => Math.exp(x - top)), sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((x) => x / sum);
}

// Projection onto the simplex: sort down, k* = max{k : 1 + k e_(k) > sum of the k largest}.
function sparsemax(e) {
  const sorted = [...e].sort((a, b) => b - a);
  let sum = 0, tau = 0;
  sorted.forEach((x, i) => {
    sum += x;
    if (1 + (i + 1) * x > sum) tau = (sum - 1) / (i + 1);
  });
  return e.map((x) => Math.max(0, x - tau));
}

// The largest threshold tau with sum max(0, e/2 - tau)^2 = 1, by bisection.
function entmax(e) {
  let low = Math.max(...e) / 2 - 1, high = Math.max(...e) / 2;
  for (let i = 0; i < 60; ++i) {
    const middle = (low + high) / 2;
    if (e.reduce((sum, x) => sum + Math.max(0, x / 2 - middle) ** 2, 0) > 1) low = middle; else high = middle;
  }
  return e.map((x) => Math.max(0, x / 2 - low) ** 2);
}

// Softmax over the two largest; equal scores go to the earlier key.
function top_two(e) {
  const kept = e.map((x, i) => [x, i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 2).map(([, i]) => i);
  const weights = softmax(kept.map((i) => e[i]));
  return e.map((_, i) => (kept.includes(i) ? weights[kept.indexOf(i)] : 0));
}

export const NORMALISERS = {
  softmax,
  '1.5-entmax': entmax,
  sparsemax,
  'top 2': top_two,
  hard: (e) => e.map((_, i) => (i === e.indexOf(Math.max(...e)) ? 1 : 0)),
  sigmoid: (e) => e.map((x) => 1 / (1 + Math.exp(-x))),
  'kernel ratio': softmax,  // exp(score) over its sum: with the kernel score, the kernel itself
  uniform: (e) => e.map(() => 1 / e.length),
  none: (e) => e,
};
