// Every structure of the library on five keys: which of them the query sees from its place, 0 to 4.

const block = (j) => Math.floor(j / 2);
const document_of = (j) => (j < 3 ? 0 : 1);
const NEIGHBOURS = [[0, 1, 4], [0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 3, 4]];  // a ring

export const STRUCTURES = {
  dense: () => true,
  causal: (i, j) => j <= i,
  window: (i, j) => Math.abs(i - j) <= 1,
  prefix: (i, j) => j < 2 || j <= i,
  first: (i, j) => j === 0 || (j <= i && i - j <= 1),
  strided: (i, j) => j <= i && (i - j <= 1 || (i - j) % 2 === 0),
  fixed: (i, j) => j <= i && (block(i) === block(j) || j % 2 === 1),
  blocks: (i, j) => block(i) === block(j),
  documents: (i, j) => document_of(i) === document_of(j),
  ragged: (i, j) => j < 3,  // a set of three; the rest is another's
  graph: (i, j) => NEIGHBOURS[i].includes(j),
};
