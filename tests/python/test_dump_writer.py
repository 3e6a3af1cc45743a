"""The npz that grows row by row is the one that NumPy would have written."""
import io
import os
import pathlib
import tempfile
import unittest
import zipfile
from unittest import mock

import support
import numpy as np

import kelvin
from kelvin._dump_writer import DumpWriter


class Npz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "x.npz"
        generator = np.random.default_rng(0)
        self.arrays = {"logits": generator.normal(size=(90, 4)), "labels": np.arange(90) % 4,
                       "layer/a.0": generator.normal(size=(90, 3, 2, 5)).astype(np.float16),
                       "weight": generator.normal(size=(4, 3)).astype(np.float32), "temperature": np.array(2.0)}

    def write(self):
        with DumpWriter(self.path) as writer:
            for name in ("weight", "temperature"):
                writer.put(name, self.arrays[name])
            for at in range(0, 90, 40):
                for name in ("logits", "labels", "layer/a.0"):
                    writer.append(name, self.arrays[name][at:at + 40], name)
            writer.finish()

    def test_holds_the_members_of_numpy(self):
        self.write()
        with zipfile.ZipFile(self.path) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual({info.compress_type for info in archive.infolist()}, {zipfile.ZIP_STORED})
            for name, array in self.arrays.items():
                npy = archive.read(f"{name}.npy")
                expected = io.BytesIO()
                np.save(expected, array)
                self.assertEqual(np.lib.format.read_magic(io.BytesIO(npy)), (1, 0))
                self.assertEqual(npy[npy.index(b"\n"):], expected.getvalue()[expected.getvalue().index(b"\n"):])
                self.assertEqual(npy.index(b"\n") % 64, 63)
        with np.load(self.path) as dump:
            for name, array in self.arrays.items():
                self.assertEqual(dump[name].dtype, array.dtype)
                np.testing.assert_array_equal(dump[name], array)

    # What files of more than 2 GiB are made of, in a small one.
    def test_is_read_by_the_tool_if_it_needs_64_bits(self):
        self.write()
        plain = kelvin.measure(self.path, "solution_rank", quiet=True)
        small = self.path.stat().st_size
        with mock.patch.object(zipfile, "ZIP64_LIMIT", 200):
            self.write()
        self.assertGreater(self.path.stat().st_size, small)
        self.assertEqual(kelvin.measure(self.path, "solution_rank", quiet=True), plain)
        with np.load(self.path) as dump:
            np.testing.assert_array_equal(dump["logits"], self.arrays["logits"])

    def test_leaves_nothing_beside_it(self):
        self.write()
        with self.assertRaises(KeyboardInterrupt), DumpWriter(self.path) as writer:
            writer.append("logits", self.arrays["logits"], "logits")
            raise KeyboardInterrupt
        self.assertEqual(os.listdir(self.path.parent), ["x.npz"])

    def test_forgets_and_renames_arrays(self):
        with DumpWriter(self.path) as writer:
            for name in ("a", "b", "c"):
                writer.append(name, self.arrays["logits"], name)
            writer.drop("b")
            writer.rename("a", "d")
            writer.append("b", self.arrays["labels"], "b")
            self.assertEqual(writer.shapes(), {"d": (90, 4), "c": (90, 4), "b": (90,)})
            writer.finish()
        with np.load(self.path) as dump:
            self.assertEqual(dump.files, ["d", "c", "b"])

    def test_rejects_rows_of_another_kind(self):
        with DumpWriter(self.path) as writer:
            writer.append("a", self.arrays["logits"], "'a'")
            for rows in (self.arrays["logits"][:, :3], self.arrays["logits"].astype(np.float32)):
                with self.assertRaisesRegex(kelvin.Error, "'a' has the shape .* per sample, but had .4. and float64"):
                    writer.append("a", rows, "'a'")


if __name__ == "__main__":
    unittest.main()
