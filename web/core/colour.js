// Colour from numbers: ramps linear in OKLab lightness (equal steps look equal, and lightness alone orders them, so
// they survive colour blindness and grey printing), turned round for the dark theme so that more is further from the page.

function linear_to_srgb(x) {
  return x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
}

// Björn Ottosson's OKLab, from lightness, chroma and hue in degrees to 8-bit sRGB.
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s]
    .map((x) => Math.round(255 * Math.min(1, Math.max(0, linear_to_srgb(Math.max(0, x))))));
}

export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

// End points as [lightness, chroma, hue]; `high` is the largest weight, `low` the smallest that is not zero.
const RAMPS = {
  light: { low: [0.92, 0.035, 232], high: [0.27, 0.115, 272], minus: [0.46, 0.14, 45], minus_low: [0.92, 0.04, 60] },
  dark: { low: [0.33, 0.06, 272], high: [0.93, 0.085, 205], minus: [0.86, 0.12, 65], minus_low: [0.33, 0.06, 50] },
};

function table(low, high) {
  return Array.from({ length: 256 }, (_, i) => {
    const t = i / 255;
    const [l, c, h] = low.map((x, k) => x + (high[k] - x) * t);
    return oklch(l, c + 0.05 * Math.sin(Math.PI * t), h);
  });
}

const tables = Object.fromEntries(Object.entries(RAMPS).map(([name, ramp]) =>
  [name, { plus: table(ramp.low, ramp.high), minus: table(ramp.minus_low, ramp.minus) }]));

// Colours for weights between 0 and `limit` (or ±limit): an exact zero has no colour at all.
export class Scale {
  constructor(limit, curve = 'linear', shade = theme()) {
    this.limit = limit || 1;
    this.curve = curve;
    this.tables = tables[shade];
  }
  fraction(weight) {
    const t = Math.min(1, Math.abs(weight) / this.limit);
    return this.curve === 'root' ? Math.sqrt(t) : t;
  }
  rgb(weight) {
    if (weight === 0) return null;
    return this.tables[weight < 0 ? 'minus' : 'plus'][Math.round(255 * this.fraction(weight))];
  }
  css(weight) {
    const rgb = this.rgb(weight);
    return rgb ? `rgb(${rgb.join(' ')})` : 'transparent';
  }
  // Ink that reads on top of the colour: of black and white one has at least 4.58 times its light, by WCAG's relative luminance.
  ink(weight) {
    const rgb = this.rgb(weight);
    if (!rgb) return 'inherit';
    const [r, g, b] = rgb.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
  }
}

// Okabe and Ito's palette, moved a little in lightness for each theme; further heads go round the hues.
const CATEGORIES = {
  light: ['#0068a5', '#c25100', '#00805c', '#a8558a', '#8a6500', '#2f86bd', '#6a4fb3', '#6b6f76'],
  dark: ['#5ab4ee', '#f5894a', '#38c99c', '#e29bc6', '#e5b532', '#9ad1f5', '#b7a1f2', '#aab0b8'],
};

export function category(i) {
  const list = CATEGORIES[theme()];
  if (i < list.length) return list[i];
  return `rgb(${oklch(theme() === 'dark' ? 0.78 : 0.5, 0.13, (i * 137.5) % 360).join(' ')})`;
}
