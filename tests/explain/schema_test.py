"""docs/explanation.schema.json and the reader agree: schema_test.py SAMPLES, a folder that write_samples wrote.

Every sample fits the schema; a sample with a fault does not.
"""

import copy
import json
import pathlib
import sys
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema (python/requirements-test.txt)")
    sys.exit(77)

SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "explanation.schema.json"
SAMPLES = pathlib.Path()


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.validator = jsonschema.Draft202012Validator(schema)
        cls.samples = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SAMPLES.glob("*.json")}

    def test_every_sample_fits(self):
        self.assertGreater(len(self.samples), 10)
        self.assertEqual({sample["view"] for sample in self.samples.values()},
                         {"bipartite", "matrix", "text", "image", "graph", "bag", "curve", "memory", "tree", "shuffle"})
        for name, sample in self.samples.items():
            with self.subTest(name):
                self.validator.validate(sample)

    def test_faults_are_refused(self):
        faults = {
            "another version": lambda e: e.update(version=2),
            "an unknown field": lambda e: e.update(wieghts=[]),
            "an unknown view": lambda e: e.update(view="pie"),
            "no title": lambda e: e.pop("title"),
            "an item without text": lambda e: e["queries"].append({}),
            "dense and links": lambda e: e["maps"][0].update(links=[[0, 0, 1]]),
            "a link of two": lambda e: e["truth"].update(sure=[[0, 1]]),
            "a position of three": lambda e: e["keys"][0].update(position=[1, 2, 3]),
        }
        alignment = next(sample for sample in self.samples.values() if sample["system"] == "bahdanau")
        for name, fault in faults.items():
            broken = copy.deepcopy(alignment)
            fault(broken)
            with self.subTest(name):
                self.assertFalse(self.validator.is_valid(broken))


if __name__ == "__main__":
    SAMPLES = pathlib.Path(sys.argv.pop(1))
    unittest.main()
