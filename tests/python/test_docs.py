"""The Python of the documentation runs as it is printed."""
import contextlib
import io
import os
import re
import types
import unittest

import support
import numpy as np
import torch
from support import loader_of, mlp, rows_and_labels

import kelvin


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", (support.ROOT / page).read_text(), re.M | re.S)


class Pages(support.InFolder):
    def setUp(self):
        super().setUp()
        former = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, former)

    def run_blocks(self, page, names):
        """What they print; each sees what the former ones defined."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            for block in blocks_of(page):
                exec(compile(block, page, "exec"), names)
        return printed.getvalue()

    def test_python(self):
        model = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
        inputs, labels = rows_and_labels(300, classes=5, width=20)
        names = {"model": model, "loader": loader_of(inputs, labels)}
        printed = self.run_blocks("docs/python.md", names)
        self.assertEqual(len(blocks_of("docs/python.md")), 6)
        # Of the full example: four directions for five classes, and samples that are told apart somewhat.
        rank, width = map(float, re.search(r"^(\d+\.0) (\d+\.0)$", printed, re.M).groups())
        self.assertEqual(rank, 4)
        self.assertLess(4, width)
        auroc = float(re.search(r"^(0\.\d+|1\.0)$", printed, re.M)[1])
        self.assertGreater(auroc, 0.55)
        self.assertIn("x.npz: 200 samples", printed)
        self.assertTrue((self.folder / "scores").is_dir())

    def test_measures(self):
        generator = np.random.default_rng(0)
        features, fc = generator.normal(size=(40, 8)).astype(np.float32), mlp()[4]
        fc = types.SimpleNamespace(weight=fc.weight.detach().numpy(), bias=fc.bias.detach().numpy())
        self.run_blocks("docs/measures.md", {
            "np": np, "features": features, "fc": fc, "logits": features @ fc.weight.T + fc.bias,
            "labels": np.arange(40) % 4, "x1": features, "x2": features.reshape(40, 2, 4)})
        readings = kelvin.measure("dump.npz", "layer_spectrum", quiet=True)
        self.assertEqual({reading["layer"] for reading in readings}, {"block1", "block2"})


if __name__ == "__main__":
    unittest.main()
