"""Makes a test of every program on the pages of scores, normalisers and structures.

    extract_snippets.py DOCS_FOLDER OUT_FOLDER

writes OUT_FOLDER/<page>.cc, with main renamed, and snippets.inc: one line a page with the text it must print, taken from the
```text block that follows. Files are rewritten only when they change.
"""

import pathlib
import re
import sys

KINDS = ("scores", "normalisers", "structures")
BLOCK = re.compile(r"```cpp\n(.*?)```(?:\s*prints\s*```text\n(.*?)```)?", re.DOTALL)


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    docs, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for page in sorted(page for kind in KINDS for page in (docs / kind).glob("*.md")):
        programs = [m for m in BLOCK.finditer(page.read_text()) if "int main(" in m[1] and "fovea/engine.h" in m[1]]
        for number, match in enumerate(programs):
            name = "_".join(page.relative_to(docs).with_suffix("").parts) + (f"_{number}" if number else "")
            if match[2] is None:
                sys.exit(f"{page}: a program without the text it prints")
            # Only main may fall off its end.
            body = match[1].replace("int main(", f"int snippet_{name}(").rstrip().removesuffix("}")
            write(out / f"{name}.cc", body + "  return 0;\n}\n")
            lines.append(f'FOVEA_SNIPPET({name}, R"({match[2]})")')
    write(out / "snippets.inc", "\n".join(lines) + "\n")
    print(";".join(sorted(str(path) for path in out.glob("*.cc") if f"({path.stem}," in "\n".join(lines))), end="")


main()
