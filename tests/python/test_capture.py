"""What kelvin.capture takes, of models and loaders, and what its options do."""
import unittest

import support
import numpy as np
import torch
from support import Returning, loader_of, mlp, rows_and_labels
from torch import nn

import kelvin


class Options(support.InFolder):
    def setUp(self):
        super().setUp()
        self.model = mlp()
        self.inputs, self.labels = rows_and_labels()

    def load(self, **options):
        self.capture(self.model, loader_of(self.inputs, self.labels), **options)
        with np.load(self.folder / "x.npz") as dump:
            return {name: dump[name] for name in dump.files}

    def test_max_samples_cuts_within_a_batch(self):
        whole, part = self.load(layers="2"), self.load(layers="2", max_samples=21)
        for name in ("logits", "labels", "features", "layer/2"):
            np.testing.assert_allclose(part[name], whole[name][:21], rtol=1e-5, atol=1e-6)

    def test_half_rounds_features_and_layers_but_no_logits(self):
        whole, half = self.load(layers="0"), self.load(layers="0", half=True)
        for name in ("features", "layer/0"):
            self.assertEqual(half[name].dtype, np.float16)
            np.testing.assert_array_equal(half[name], whole[name].astype(np.float16))
        for name in ("logits", "weight", "bias"):
            np.testing.assert_array_equal(half[name], whole[name])
        kelvin.measure(self.folder / "x.npz", quiet=True)

    def test_temperature_is_that_of_probabilities(self):
        dump = self.load(temperature=10)
        logits = torch.from_numpy(dump["logits"]).double() / 10
        nll = nn.functional.cross_entropy(logits, self.labels).item()
        readings = kelvin.measure(self.folder / "x.npz", "calibration", quiet=True)
        self.assertAlmostEqual(readings.value("nll"), nll, places=9)

    # What follows works in place on what the first layer gives.
    def test_stores_outputs_before_they_are_overwritten(self):
        expected = self.model[0](self.inputs).detach()
        self.assertTrue((expected < 0).any())
        np.testing.assert_allclose(self.load(layers="0")["layer/0"], expected, rtol=1e-5, atol=1e-6)

    def test_pool_averages_maps_and_tokens(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2), nn.Linear(36, 5), nn.Flatten(1), nn.Linear(20, 4))
        images = torch.randn(10, 3, 8, 8)
        loader = loader_of(images, torch.zeros(10, dtype=torch.int64))
        with torch.no_grad():
            maps, tokens = model[0](images), model[:3](images)
        expected = {2: (nn.functional.adaptive_avg_pool2d(maps, 2), tokens.mean(1)),
                    "flatten": (maps.flatten(1), tokens.flatten(1)), None: (maps, tokens),
                    9: (maps, tokens.mean(1))}  # not enlarged
        for pool, arrays in expected.items():
            self.capture(model, loader, layers=["0", "2"], pool=pool)
            with np.load(self.folder / "x.npz") as dump:
                for name, array in zip(("layer/0", "layer/2"), arrays):
                    np.testing.assert_allclose(dump[name], array, rtol=1e-4, atol=1e-5)

    def test_pool_averages_along_one_dimensional_convolutions(self):
        model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.Flatten(), nn.Linear(24, 4))
        captured = self.capture(model, loader_of(torch.randn(6, 3, 8), torch.zeros(6)), layers="0", pool=2)
        self.assertEqual(captured.arrays["layer/0"], (6, 4, 2))

    def test_layers_may_be_a_function(self):
        captured = self.capture(self.model, loader_of(self.inputs, self.labels),
                                layers=lambda name, module: isinstance(module, nn.ReLU))
        self.assertEqual([name for name in captured.arrays if "/" in name], ["layer/1", "layer/3"])

    def test_narrow_numbers_are_widened(self):
        model = self.model.to(torch.bfloat16)
        self.capture(model, loader_of(self.inputs.to(torch.bfloat16), self.labels), layers="2")
        with np.load(self.folder / "x.npz") as dump:
            for name in ("logits", "features", "weight", "bias", "layer/2"):
                self.assertEqual(dump[name].dtype, np.float32, name)
        with torch.no_grad():
            expected = model(self.inputs.to(torch.bfloat16)).float()
        with np.load(self.folder / "x.npz") as dump:
            np.testing.assert_allclose(dump["logits"], expected, rtol=0.02, atol=0.01)

    def test_doubles_stay(self):
        self.model.double()
        self.inputs = self.inputs.double()
        dump = self.load()
        self.assertEqual({dump[name].dtype for name in ("logits", "features", "weight")}, {np.dtype(float)})
        np.testing.assert_allclose(dump["features"] @ dump["weight"].T + dump["bias"], dump["logits"], rtol=1e-12)


class Loaders(support.InFolder):
    def setUp(self):
        super().setUp()
        self.model = mlp()
        self.inputs, self.labels = rows_and_labels()

    def labels_of(self, loader, **options):
        captured = self.capture(self.model, loader, **options)
        with np.load(captured) as dump:
            return dump["labels"]

    def test_labels_may_be_of_any_kind_of_whole_numbers(self):
        for labels in (self.labels.to(torch.uint8), self.labels.float(), self.labels[:, None], self.labels.numpy(),
                       self.labels.tolist()):
            found = self.labels_of([(self.inputs, labels)])
            self.assertEqual(found.dtype, np.int64)
            np.testing.assert_array_equal(found, self.labels)

    def test_inputs_may_be_a_dict_or_several(self):
        both = Returning(lambda model, x, scale: model.fc(x * scale))
        scale = torch.full((50, 1), 2.0)
        for inputs in ({"x": self.inputs, "scale": scale}, (self.inputs, scale)):
            self.capture(both, [(inputs, self.labels)])
            with np.load(self.folder / "x.npz") as dump:
                np.testing.assert_allclose(dump["features"], 2 * self.inputs)

    def test_may_give_dicts(self):
        found = self.labels_of([{"image": self.inputs, "label": self.labels}], inputs="image", labels="label")
        np.testing.assert_array_equal(found, self.labels)

    def test_may_be_generators_with_empty_batches(self):
        batches = ((self.inputs[at:at + 5], self.labels[at:at + 5]) for at in (0, 50, 5))
        np.testing.assert_array_equal(self.labels_of(batches), self.labels[:10])

    def test_without_labels_say_what_cannot_be_measured(self):
        for loader in (loader_of(self.inputs), [self.inputs], [{"x": self.inputs}]):
            keys = {"inputs": "x"} if isinstance(loader, list) and isinstance(loader[0], dict) else {}
            notes = self.notes_of(self.model, loader, **keys)
            self.assertIn("no labels: the file can be id_test= or ood= of kelvin.ood", notes)
        with np.load(self.folder / "x.npz") as dump:
            self.assertNotIn("labels", dump.files)
        self.assert_rejected("has no array 'labels'", kelvin.measure, self.folder / "x.npz", quiet=True)

    def test_with_labels_of_other_classes_say_so(self):
        notes = self.notes_of(self.model, loader_of(self.inputs, self.labels + 4))
        self.assertRegex(notes, "label [4-7] is none of the 4 classes")


class Models(support.InFolder):
    def setUp(self):
        super().setUp()
        self.inputs, self.labels = rows_and_labels()
        self.loader = loader_of(self.inputs, self.labels)

    def test_may_be_wrapped(self):
        class Compiled(nn.Module):  # as torch.compile of 2.x wraps it; hooks inside are not called
            def __init__(self, model):
                super().__init__()
                self._orig_mod = model

            def forward(self, x):
                raise AssertionError("the compiled model was called")

        model = mlp()
        plain = self.capture(model, self.loader, layers="*").path.read_bytes()
        inside = nn.Sequential(model[0], model[1], Compiled(model[2]), model[3], model[4])
        for wrapped in (nn.DataParallel(model), Compiled(model), Compiled(nn.DataParallel(model)), inside):
            self.assertEqual(self.capture(wrapped, self.loader, layers="*").path.read_bytes(), plain)
        self.assertIsInstance(inside[2], Compiled)

    @unittest.skipUnless(hasattr(torch, "compile"), "needs PyTorch 2")
    def test_may_be_compiled(self):
        model = mlp()
        plain = self.capture(model, self.loader, layers="*").path.read_bytes()
        compiled = torch.compile(model, backend="eager")
        inside = nn.Sequential(*model[:2], torch.compile(model[2], backend="eager"), *model[3:])
        in_place = nn.Sequential(*mlp())
        in_place.load_state_dict(model.state_dict())
        in_place.compile(backend="eager")
        in_place[2].compile(backend="eager")
        for each in (compiled, inside, in_place):
            each(self.inputs)  # compiles
            self.assertEqual(self.capture(each, self.loader, layers="*").path.read_bytes(), plain)
        self.assertIsNotNone(in_place._compiled_call_impl)

    def test_may_return_logits_by_name(self):
        for function in (lambda model, x: {"logits": model.fc(x), "loss": None},
                         lambda model, x: type("Output", (), {"logits": model.fc(x)})):
            captured = self.capture(Returning(function), self.loader)
            self.assertEqual(captured.arrays["logits"], (50, 4))
            self.assertEqual(captured.arrays["weight"], (4, 6))

    # The classifier is the layer that gives the logits, wherever it was defined.
    def test_need_not_define_the_classifier_last(self):
        model = Returning(lambda model, x: model.fc(model.before(x)))
        model.before = nn.Linear(6, 6)
        with np.load(self.capture(model, self.loader)) as dump:
            np.testing.assert_array_equal(dump["weight"], model.fc.weight.detach())
            np.testing.assert_allclose(dump["features"], model.before(self.inputs).detach(), rtol=1e-5, atol=1e-6)

    def test_that_scale_their_logits_give_no_weights(self):
        model = Returning(lambda model, x: model.fc(x) / 10)
        self.assertIn("is 0.1 times what 'fc' gives", self.notes_of(model, self.loader))
        with np.load(self.folder / "x.npz") as dump:
            self.assertEqual(set(dump.files), {"logits", "labels", "features"})

    def test_without_a_final_linear_layer_give_no_weights(self):
        model = Returning(lambda model, x: model.fc(x) ** 2)
        self.assertIn("is not what 'fc', the last linear layer, gives", self.notes_of(model, self.loader))

    def test_without_linear_layers_give_the_layers_that_were_named(self):
        model = nn.Sequential(nn.Unflatten(1, (6, 1)), nn.Conv1d(6, 4, 1), nn.Flatten())
        self.assertIn("no linear layer (nn.Linear) found: 'features'", self.notes_of(model, self.loader, layers="1"))
        with np.load(self.folder / "x.npz") as dump:
            self.assertEqual(set(dump.files), {"logits", "labels", "layer/1"})

    def test_may_call_a_layer_several_times(self):
        model = Returning(lambda model, x: model.fc(model.act(x + model.act(x))))
        model.act = nn.ReLU()
        notes = self.notes_of(model, self.loader, layers="act")
        self.assertIn("called several times per forward pass: 'act'; stored one by one, as 'act#1', 'act#2'", notes)
        first = self.inputs.relu()
        with np.load(self.folder / "x.npz") as dump:
            np.testing.assert_allclose(dump["layer/act#1"], first)
            np.testing.assert_allclose(dump["layer/act#2"], (self.inputs + first).relu())

    def test_may_have_layers_that_are_not_called(self):
        model = Returning(lambda model, x: model.fc(x))
        model.unused = nn.Linear(2, 2)
        notes = self.notes_of(model, self.loader, layers="*")
        self.assertIn("layers left out: 'unused' (not called in the forward pass)", notes)

    def test_may_have_weight_layers_that_see_no_samples(self):
        model = Returning(lambda model, x: model.fc(x + model.positions(torch.zeros(1, 3))))
        model.positions = nn.Linear(3, 6)
        notes = self.notes_of(model, self.loader, layers="*")
        self.assertIn("layers left out: 'positions' (gives [1, 6] for 16 samples", notes)


if __name__ == "__main__":
    unittest.main()
