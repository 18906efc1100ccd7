#!/bin/sh
# Runs `fovea bench --quick` on a few rows and checks what it writes. Arguments: source folder, scratch folder.
set -eu
source=$1
scratch=$2/smoke
rm -rf "$scratch"
mkdir -p "$scratch"
cp "$source/docs/performance.md" "$scratch/doc.md"

"$FOVEA_COMMAND" bench --quick --threads 1 --filter 'dot/128/*' --json "$scratch/run.json" --html "$scratch/run.html" \
  >"$scratch/table" 2>"$scratch/progress"
for wanted in 'roofs: fma' 'dot/128/causal/forward+backward' 'figures reached'; do
  grep -qF "$wanted" "$scratch/table" || { echo "the table lacks '$wanted'"; cat "$scratch/table"; exit 1; }
done
grep -qF '</html>' "$scratch/run.html"

python3 "$source/bench/report/update_performance_doc.py" "$scratch/run.json" --doc "$scratch/doc.md"
grep -qF '`dot/128/dense/forward`' "$scratch/doc.md"

if "$FOVEA_COMMAND" bench --filter 'no such row' 2>"$scratch/error"; then
  echo "a filter that matches nothing must fail"
  exit 1
else
  test $? -eq 2
fi
grep -qF "no row matches 'no such row'" "$scratch/error"

if "$FOVEA_COMMAND" bench --quick --filter 'dot/128/dense/forward' --target AVX9 2>"$scratch/error"; then
  echo "an unknown target must fail"
  exit 1
fi
grep -qF 'AVX9' "$scratch/error"
