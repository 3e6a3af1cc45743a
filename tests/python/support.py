"""Networks and data that tests of the Python package share."""
import os
import pathlib
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault("KELVIN_TOOL", str(ROOT / "build" / "kelvin"))
os.environ["OMP_NUM_THREADS"] = "1"  # test files run side by side

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import kelvin  # noqa: E402


class InFolder(unittest.TestCase):
    """A folder of its own for each test, and captures without progress."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)

    def capture(self, model, loader, name="x.npz", **options):
        return kelvin.capture(model, loader, self.folder / name, progress=False, **options)

    def notes_of(self, model, loader, **options):
        """The notes of a capture, each of which must also have been a warning."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            captured = self.capture(model, loader, **options)
        texts = [str(each.message) for each in caught]
        for note in captured.notes:
            self.assertIn(f"kelvin.capture: {note}", texts)
        return "\n".join(captured.notes)

    def assert_rejected(self, text, action, *arguments, **options):
        """An Error of one line that contains `text`."""
        with self.assertRaises(kelvin.Error) as raised:
            action(*arguments, **options)
        self.assertIn(text, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))


def mlp(classes=4):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, classes))


def loader_of(inputs, labels=None, batch_size=16, **options):
    tensors = [inputs] if labels is None else [inputs, labels]
    return DataLoader(TensorDataset(*tensors), batch_size, **options)


def rows_and_labels(samples=50, classes=4, width=6, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(samples, width, generator=generator),
            torch.randint(classes, (samples,), generator=generator))


class TransformerClassifier(nn.Module):
    """A plain encoder over tokens, whose mean is classified."""

    def __init__(self, classes=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)
        self.embedding = nn.Embedding(20, 16)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, classes)

    def forward(self, tokens, padding=None):
        encoded = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        if padding is None:
            return self.head(encoded.mean(1))
        are_there = padding.logical_not()[..., None]
        return self.head((encoded * are_there).sum(1) / are_there.sum(1))


class Returning(nn.Module):
    """Returns what a function makes of the inputs and the classifier."""

    def __init__(self, function, classes=4):
        super().__init__()
        self.fc = nn.Linear(6, classes)
        self.function = function

    def forward(self, *inputs, **named):
        return self.function(self, *inputs, **named)
