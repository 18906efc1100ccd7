"""The Python in the documentation runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "attend.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number):
    exec(compile(BLOCKS[number], f"{PAGE.name}, block {number}", "exec"), {})


def test_there_are_blocks():
    assert len(BLOCKS) >= 3
