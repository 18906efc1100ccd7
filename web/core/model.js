// An Explanation as the views use it: weights by layer and head, truth by pair, both looked up in constant time.

export function decode_bytes(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function decode_floats(numbers) {
  if (typeof numbers !== 'string') return Float32Array.from(numbers);
  return new Float32Array(decode_bytes(numbers).buffer);
}

// Weights of one layer and head, rows sorted by query: `starts` [rows + 1], `columns` and `values` of what is not zero
// when sparse; `dense` otherwise.
export class WeightMap {
  constructor(rows, columns, map) {
    this.rows = rows;
    this.width = columns;
    this.dense = map.dense ? decode_floats(map.dense) : null;
    if (!this.dense) this.index(map.links || []);
    let low = 0, high = 0;
    for (const value of this.dense || this.values) {
      if (value > high) high = value;
      if (value < low) low = value;
    }
    this.minimum = low;
    this.maximum = high;
    this.limit = Math.max(high, -low);
  }
  index(links) {
    const sorted = [...links].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    this.starts = new Int32Array(this.rows + 1);
    this.columns = new Int32Array(sorted.length);
    this.values = new Float32Array(sorted.length);
    this.found = new Map();
    sorted.forEach(([query, key, weight], i) => {
      this.starts[query + 1] = i + 1;
      this.columns[i] = key;
      this.values[i] = weight;
      this.found.set(query * this.width + key, weight);
    });
    for (let i = 1; i <= this.rows; ++i) this.starts[i] = Math.max(this.starts[i], this.starts[i - 1]);
  }
  at(query, key) {
    if (this.dense) return this.dense[query * this.width + key];
    return this.found.get(query * this.width + key) ?? 0;
  }
  // [key, weight] of one query; of a sparse map only what is listed, zeros that are listed included.
  row(query) {
    if (this.dense) {
      const start = query * this.width;
      return Array.from(this.dense.subarray(start, start + this.width), (weight, key) => [key, weight]);
    }
    const out = [];
    for (let i = this.starts[query]; i < this.starts[query + 1]; ++i) out.push([this.columns[i], this.values[i]]);
    return out;
  }
}

export class Model {
  constructor(explanation) {
    Object.assign(this, { outcome: '', notes: [], queries: [], keys: [], groups: [], maps: [], plots: [], tables: [],
      tree: [], score: '', normaliser: '', structure: '', scale: '', query_label: 'query', key_label: 'key' },
    explanation);
    this.cache = new Map();
    this.given = new Map(this.maps.map((map) => [this.place(map.layer || 0, map.head || 0), map]));
    this.truths = this.index_truth();
    this.truth_dense = this.truth?.dense
      ? new WeightMap(this.queries.length, this.keys.length, this.truth) : null;
  }
  place(layer, head) {
    return layer * this.heads.names.length + head;
  }
  has(layer, head) {
    return this.given.has(this.place(layer, head));
  }
  map(layer, head) {
    const place = this.place(layer, head);
    if (!this.cache.has(place)) {
      this.cache.set(place, new WeightMap(this.queries.length, this.keys.length, this.given.get(place) || { links: [] }));
    }
    return this.cache.get(place);
  }
  index_truth() {
    const pairs = new Map();
    for (const [query, key] of this.truth?.possible || []) pairs.set(query * this.keys.length + key, 'possible');
    for (const [query, key] of this.truth?.sure || []) pairs.set(query * this.keys.length + key, 'sure');
    return pairs;
  }
  get has_truth() {
    return this.truths.size > 0 || this.truth_dense !== null;
  }
  // 'sure', 'possible', a number, or null where the truth says nothing.
  truth_at(query, key) {
    if (this.truth_dense) return this.truth_dense.at(query, key);
    return this.truths.get(query * this.keys.length + key) ?? null;
  }
  // Does the truth want this pair looked at?
  wanted(query, key) {
    const truth = this.truth_at(query, key);
    return typeof truth === 'number' ? truth > 0 : truth !== null;
  }
}

// A canvas holding an Explanation's picture.
export function picture_canvas(picture) {
  const bytes = decode_bytes(picture.pixels), channels = picture.channels || 1;
  const canvas = document.createElement('canvas');
  canvas.width = picture.width;
  canvas.height = picture.height;
  const image = new ImageData(picture.width, picture.height);
  for (let i = 0; i < picture.width * picture.height; ++i) {
    for (let c = 0; c < 3; ++c) image.data[4 * i + c] = bytes[channels * i + (channels === 3 ? c : 0)];
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}
