// A weight map as coloured tiles at every zoom level. Level k shows blocks of 2^k x 2^k cells by their largest weight, so
// a lone peak stays visible however far out; tiles are made when first seen and kept while they fit.

const TILE = 256;
const MOST_TILES = 192;

export class Tiles {
  constructor(map, scale) {
    this.map = map;
    this.scale = scale;
    this.cache = new Map();
    this.levels = [map.dense];
  }
  // Dense weights pooled by 2^level; one quarter of the work of the level below.
  pooled(level) {
    if (!this.levels[level]) {
      const below = this.pooled(level - 1);
      const w = this.size(this.map.width, level - 1), h = this.size(this.map.rows, level - 1);
      const width = Math.ceil(w / 2), height = Math.ceil(h / 2);
      const out = new Float32Array(width * height);
      for (let y = 0; y < h; ++y) {
        for (let x = 0; x < w; ++x) {
          const value = below[y * w + x], at = (y >> 1) * width + (x >> 1);
          if (Math.abs(value) > Math.abs(out[at])) out[at] = value;
        }
      }
      this.levels[level] = out;
    }
    return this.levels[level];
  }
  size(cells, level) {
    for (let k = 0; k < level; ++k) cells = Math.ceil(cells / 2);
    return cells;
  }
  fill(level, row, column, values, width, height) {
    const { map } = this;
    if (map.dense) {
      const source = this.pooled(level), stride = this.size(map.width, level);
      for (let y = 0; y < height; ++y) {
        const start = (row + y) * stride + column;
        values.set(source.subarray(start, start + width), y * width);
      }
      return;
    }
    const first = row * 2 ** level, last = Math.min(map.rows, (row + height) * 2 ** level);
    for (let query = first; query < last; ++query) {
      const y = Math.floor(query / 2 ** level) - row;
      for (let i = map.starts[query]; i < map.starts[query + 1]; ++i) {
        const x = Math.floor(map.columns[i] / 2 ** level) - column;
        if (x < 0 || x >= width) continue;
        if (Math.abs(map.values[i]) > Math.abs(values[y * width + x])) values[y * width + x] = map.values[i];
      }
    }
  }
  tile(level, row, column) {
    const name = `${level}/${row}/${column}`;
    const kept = this.cache.get(name);
    if (kept) return kept;
    const width = Math.min(TILE, this.size(this.map.width, level) - column), height = Math.min(TILE, this.size(this.map.rows, level) - row);
    const values = new Float32Array(width * height);
    this.fill(level, row, column, values, width, height);
    const image = new ImageData(width, height);
    for (let i = 0; i < values.length; ++i) {
      const rgb = this.scale.rgb(values[i]);
      if (!rgb) continue;
      image.data.set(rgb, 4 * i);
      image.data[4 * i + 3] = 255;
    }
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    canvas.getContext('2d').putImageData(image, 0, 0);
    if (this.cache.size >= MOST_TILES) this.cache.delete(this.cache.keys().next().value);
    this.cache.set(name, canvas);
    return canvas;
  }
  // Draws what a camera sees: `x`, `y` are the cell at the canvas's corner, `cell` its size in canvas pixels.
  paint(context, camera, width, height) {
    const level = Math.max(0, Math.floor(Math.log2(1 / camera.cell)));
    const block = 2 ** level, size = camera.cell * block;
    const columns = this.size(this.map.width, level), rows = this.size(this.map.rows, level);
    const first = (origin) => Math.max(0, Math.floor(origin / block / TILE) * TILE);
    context.imageSmoothingEnabled = false;
    for (let row = first(camera.y); row < rows && (row * block - camera.y) * camera.cell < height; row += TILE) {
      for (let column = first(camera.x); column < columns && (column * block - camera.x) * camera.cell < width; column += TILE) {
        const tile = this.tile(level, row, column);
        context.drawImage(tile, (column * block - camera.x) * camera.cell, (row * block - camera.y) * camera.cell,
          tile.width * size, tile.height * size);
      }
    }
  }
}
