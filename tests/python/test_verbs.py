"""What the tool says of dumps, by NumPy and scikit-learn."""
import io
import unittest
from contextlib import redirect_stderr

import support
import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score
from support import loader_of, rows_and_labels
from torch import nn

import kelvin


class Dumps(support.InFolder):
    def setUp(self):
        super().setUp()
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
        self.paths = {}
        for seed, name in enumerate(("train", "test", "close", "remote")):
            inputs, labels = rows_and_labels(200, seed=seed)
            with torch.no_grad():  # labels that the network mostly agrees with
                agreed = self.model(inputs).argmax(1)
            labels = torch.where(torch.arange(200) % 4 > 0, agreed, labels)
            shift = {"close": 0.5, "remote": 3.0}.get(name, 0.0)
            self.paths[name] = self.capture(self.model, loader_of(inputs + shift, labels), f"{name}.npz")

    def load(self, name):
        with np.load(self.paths[name]) as dump:
            return {key: dump[key].astype(float) for key in dump.files}


class Ood(Dumps):
    def measure(self, **options):
        return kelvin.ood(id_train=self.paths["train"], id_test=self.paths["test"],
                          ood={name: self.paths[name] for name in ("close", "remote")}, quiet=True, **options)

    def test_gives_the_auroc_of_scikit_learn(self):
        readings = self.measure(detectors=["msp"])
        scores = {name: log_softmax(self.load(name)["logits"], axis=1).max(1) for name in ("test", "close", "remote")}
        for name in ("close", "remote"):
            both = np.concatenate([scores["test"], scores[name]])
            expected = roc_auc_score(np.repeat([1, 0], 200), both)
            self.assertAlmostEqual(readings.value("auroc", detector="msp", ood=name), expected, places=12)

    def test_gives_all_detectors_that_a_dump_has_enough_for(self):
        readings = self.measure()
        detectors = {reading["detector"] for reading in readings.select("auroc")}
        self.assertTrue({"msp", "energy", "neco", "vim", "knn", "mahalanobis", "react"} <= detectors, detectors)
        close, remote = (readings.value("auroc", detector="knn", ood=name) for name in ("close", "remote"))
        self.assertGreater(remote, close + 0.1)

    def test_takes_settings_of_detectors(self):
        readings = self.measure(detectors=["knn"], detector__knn__neighbours=7)
        self.assertEqual(readings[0]["definition"]["neighbours"], 7)

    def test_needs_no_labels_of_what_it_scores(self):
        inputs, _ = rows_and_labels(30, seed=9)
        with self.assertWarnsRegex(UserWarning, "no labels"):
            unlabelled = self.capture(self.model, loader_of(inputs), "unlabelled, and so on.npz")
        readings = kelvin.ood(id_train=self.paths["train"], id_test=unlabelled, ood=[unlabelled], detectors="msp",
                              quiet=True)
        self.assertEqual(readings.value("auroc", ood="unlabelled, and so on"), 0.5)
        self.assert_rejected("has no array 'labels'", kelvin.ood, id_train=unlabelled, id_test=unlabelled,
                             ood=unlabelled, quiet=True)


class Calibrate(Dumps):
    def test_fits_the_temperature_that_scipy_finds(self):
        from scipy.optimize import minimize_scalar

        val = self.load("train")

        def nll(dump, temperature):
            return -log_softmax(dump["logits"] / temperature, axis=1)[np.arange(200), dump["labels"].astype(int)].mean()

        best = minimize_scalar(lambda log: nll(val, np.exp(log)), bounds=(-3, 3), method="bounded",
                               options={"xatol": 1e-10})
        readings = kelvin.calibrate(self.paths["train"], self.paths["test"], quiet=True)
        self.assertAlmostEqual(readings.value("temperature") / np.exp(best.x), 1, places=5)
        test = self.load("test")
        self.assertAlmostEqual(readings.value("nll", scaling="none"), nll(test, 1), places=9)
        self.assertAlmostEqual(readings.value("nll", scaling="temperature"), nll(test, np.exp(best.x)), places=6)

    def test_halves_one_dump(self):
        readings = kelvin.calibrate(self.paths["test"], bins=5, seed=3, quiet=True)
        definition = readings.select("ece", scaling="none")[0]["definition"]
        self.assertEqual((definition["samples"], definition["bins"], definition["halves_seed"]), (100, 5, 3))


class Measure(Dumps):
    def test_takes_settings_and_writes_curves_where_it_is_told(self):
        output = self.folder / "curves.npz"
        readings = kelvin.measure(self.paths["test"], "calibration", output=output, measure__calibration__bins=7, quiet=True)
        self.assertEqual(readings.select("ece")[0]["definition"]["bins"], 7)
        with np.load(output) as curves:
            self.assertEqual(curves["reliability/accuracy"].shape, (7,))

    def test_raises_what_the_tool_says(self):
        self.assert_rejected("did you mean 'solution_rank'", kelvin.measure, self.paths["test"], "solution_rnk")
        self.assert_rejected("nowhere.npz: no such run or file", kelvin.measure, self.folder / "nowhere.npz")
        broken = self.folder / "broken.npz"
        broken.write_bytes(self.paths["test"].path.read_bytes()[:-100])
        self.assert_rejected(str(broken), kelvin.measure, broken)

    def test_says_how_far_it_is(self):
        with redirect_stderr(io.StringIO()) as said:
            kelvin.measure(self.paths["test"], "solution_rank")
        self.assertRegex(said.getvalue(), "^measure: ")

    def test_takes_a_path_of_any_letters_and_can_be_quiet(self):
        odd = self.folder / "o=d, d\u00e9.npz"
        odd.write_bytes(self.paths["test"].path.read_bytes())
        dump = self.load("test")
        with redirect_stderr(io.StringIO()) as said:
            readings = kelvin.measure(odd, "accuracy", quiet=True)
        self.assertEqual(readings.value("accuracy"), (dump["logits"].argmax(1) == dump["labels"]).mean())
        self.assertEqual(said.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
