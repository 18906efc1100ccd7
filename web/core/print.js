// Paper shows everything: every picture, every fold open, in the light theme and as wide as the sheet. Afterwards the page is
// as it was.

function redraw(frames) {
  for (const frame of frames) {
    frame.draw();
    frame.drawing?.paint_now?.();  // no animation frame comes before the sheet is drawn
  }
}

export function print_whole(parts, announce_theme) {
  let before = null;
  const frames = () => [...document.querySelectorAll('figure.explanation')].map((figure) => figure.frame);
  addEventListener('beforeprint', () => {
    const folds = [...document.querySelectorAll('details.fold')].filter((fold) => !fold.open);
    before = { folds, theme: document.documentElement.dataset.theme };
    document.documentElement.dataset.theme = 'light';
    document.body.classList.add('printing');
    for (const fold of folds) fold.open = true;
    for (const part of parts) part.show_all();
    announce_theme();
    redraw(frames());
  });
  addEventListener('afterprint', () => {
    if (!before) return;
    document.body.classList.remove('printing');
    if (before.theme) document.documentElement.dataset.theme = before.theme;
    else delete document.documentElement.dataset.theme;
    for (const fold of before.folds) fold.open = false;
    for (const part of parts) part.show(part.chosen);
    announce_theme();
    redraw(frames());
    before = null;
  });
}
