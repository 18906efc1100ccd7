// Functions of a set's members, worked out in the page for the order they are shown in: a sum or a maximum and the layers
// after it (Deep Sets), or torch.nn.GRU's cell, one member after another. Arithmetic is in double unless it says otherwise.

import { decode_floats } from './model.js';

const ACTIVATIONS = { none: (x) => x, tanh: Math.tanh, relu: (x) => Math.max(0, x) };

// W x + b, W row by row.
function affine(weight, bias, x) {
  return Array.from(bias, (start, row) => {
    let sum = start;
    for (let j = 0; j < x.length; ++j) sum += weight[row * x.length + j] * x[j];
    return sum;
  });
}

// Each coordinate's largest.
function largest_of(vectors) {
  return Array.from(vectors[0], (_, j) => vectors.reduce((top, vector) => Math.max(top, vector[j]), -Infinity));
}

// In double and from the smallest up: whatever order the members come in, the same numbers are added in the same order.
function sorted_sum(vectors) {
  return Array.from(vectors[0], (_, j) => vectors.map((vector) => vector[j]).sort((a, b) => a - b).reduce((sum, x) => sum + x, 0));
}

// As a float32 accumulator adds, in the order shown: every partial sum is rounded.
function rounded_sum(vectors) {
  return Array.from(vectors[0], (_, j) => vectors.reduce((sum, vector) => Math.fround(sum + vector[j]), 0));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// The last state over the vectors in the order shown.
function last_state(gru, vectors) {
  const width = gru.hidden_bias.length / 3;
  let state = new Array(width).fill(0);
  for (const vector of vectors) {
    const now = affine(gru.input_weight, gru.input_bias, vector), before = affine(gru.hidden_weight, gru.hidden_bias, state);
    state = state.map((old, i) => {
      const reset = sigmoid(now[i] + before[i]), update = sigmoid(now[width + i] + before[width + i]);
      return (1 - update) * Math.tanh(now[2 * width + i] + reset * before[2 * width + i]) + update * old;
    });
  }
  return state;
}

function probability(logits, chosen) {
  const top = Math.max(...logits), exps = logits.map((x) => Math.exp(x - top));
  return exps[chosen] / exps.reduce((a, b) => a + b, 0);
}

// One line for each way of answering: { label, given, at(order, number of the order among those drawn) }. A sum has two
// lines, as the model takes it and, `aside`, as floats would.
export function reader_lines(shuffle) {
  const { width } = shuffle, chosen = shuffle.chosen ?? -1, all = decode_floats(shuffle.vectors);
  return shuffle.readers.flatMap((reader) => {
    const { label, given, kind } = reader;
    if (kind === 'drawn') return [{ label, given, at: (_, drawn) => reader.answers[drawn] }];
    const shift = reader.shift ?? 0;
    // Float32 arrays round what is written into them: the shift is added as the model adds it.
    const members = Array.from({ length: all.length / width }, (_, i) => all.slice(i * width, (i + 1) * width).map((x) => x + shift));
    const layers = (reader.layers || []).map((layer) => ({ weight: decode_floats(layer.weight), bias: decode_floats(layer.bias), activation: ACTIVATIONS[layer.activation || 'none'] }));
    const line = (name, together, aside = false) => ({ label: name, given, aside, at: (order) => {
      const out = layers.reduce((x, layer) => affine(layer.weight, layer.bias, x).map(layer.activation), together(order.map((i) => members[i])));
      return chosen < 0 ? out[0] : probability(out, chosen);
    } });
    if (kind === 'max') return [line(label, largest_of)];
    if (kind === 'sum') return [line(label, sorted_sum), line(`${label}, summed in float32`, rounded_sum, true)];
    const gru = Object.fromEntries(Object.entries(reader.gru).map(([name, numbers]) => [name, decode_floats(numbers)]));
    return [line(label, (vectors) => last_state(gru, vectors))];
  });
}
