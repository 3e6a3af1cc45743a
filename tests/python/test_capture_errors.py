"""Each message of kelvin.capture, once."""
import unittest
from unittest import mock

import support
import torch
from support import Returning, loader_of, mlp, rows_and_labels
from torch import nn

import kelvin
from kelvin import _dump_writer


class Rejections(support.InFolder):
    def setUp(self):
        super().setUp()
        self.inputs, self.labels = rows_and_labels()
        self.loader = loader_of(self.inputs, self.labels)

    def rejects(self, text, model=None, loader=None, **options):
        self.assert_rejected(text, self.capture, mlp() if model is None else model,
                             self.loader if loader is None else loader, **options)
        self.assertEqual([path.name for path in self.folder.iterdir()], [])

    def returns(self, function):
        return Returning(lambda model, x: function(model.fc(x)))


class Arguments(Rejections):
    def test_path(self):
        self.rejects("x.npy: the name must end in .npz", name="x.npy")
        self.rejects("there is no folder", name="nowhere/x.npz")
        self.assert_rejected("is a folder", kelvin.capture, mlp(), self.loader, self.folder_named("y.npz"))

    def folder_named(self, name):
        (self.folder / name).mkdir()
        return self.folder / name

    def test_options(self):
        for pool in ("mean", 0, True, 1.5):
            self.rejects(f"pool: must be None, 'flatten' or a size of at least 1, got {pool!r}", pool=pool)
        self.rejects("max_samples: must be a whole number of at least 1, got 0", max_samples=0)
        for temperature in (0, float("nan"), "warm"):
            self.rejects(f"temperature: must be a number above 0, got {temperature!r}", temperature=temperature)

    def test_device(self):
        self.rejects("device: PyTorch knows no device 'gpu'", device="gpu")
        self.rejects("device: is 'meta', but the model is on 'cpu'; move it with model.to('meta')", device="meta")

    def test_model(self):
        self.rejects("the model must be a torch.nn.Module, got a function", model=lambda x: x)
        self.rejects("the model is TorchScript", model=torch.jit.script(mlp()))

    def test_layers(self):
        self.rejects("no module named 'layr'; there are '0', '1', '2', '3', '4'", layers="layr")
        model = nn.Sequential()
        model.add_module("layer1", nn.Linear(6, 4))
        self.rejects("no module named 'layr1'; the nearest are 'layer1'", model=model, layers="layr1")
        self.rejects("no module named '5.*'", layers=["0", "5.*"])
        self.rejects("the model has no modules inside", model=nn.Linear(6, 4), layers="0")
        self.rejects("layers: must name at least one layer", layers=[])
        self.rejects("layers: must be names or patterns, a list of them or a function, got 3", layers=[3])
        self.rejects("the function chose none of the 5 modules", layers=lambda name, module: False)
        self.rejects("layers='*': no module has a weight matrix", model=nn.Sequential(nn.ReLU()), layers="*")


class Outputs(Rejections):
    def test_that_are_no_logits(self):
        self.rejects("the model must return logits, as a tensor or under the name 'logits', got a tuple of 2",
                     model=self.returns(lambda logits: (logits, None)))
        self.rejects("got a dict", model=self.returns(lambda logits: {"output": logits}))
        self.rejects("got [16, 4, 1] of float32", model=self.returns(lambda logits: logits[..., None]))
        self.rejects("at least two classes, got [16, 1]", model=self.returns(lambda logits: logits[:, :1]))
        self.rejects("got [16, 4] of int64", model=self.returns(lambda logits: logits.long()))

    def test_without_a_classifier(self):
        convolution = nn.Sequential(nn.Unflatten(1, (6, 1)), nn.Conv1d(6, 4, 1), nn.Flatten())
        self.rejects("no linear layer (nn.Linear) found", model=convolution)
        self.rejects("no linear layer (nn.Linear) that is called with [samples, features]",
                     model=Returning(lambda model, x: model.fc(x[:, None])[:, 0]))

    def test_of_layers_that_are_no_tensors(self):
        model = Returning(lambda model, x: model.fc(model.before(x)[0]))
        model.before = nn.LSTM(6, 6)
        self.rejects("layer 'before' gives a tuple of 2, where one tensor is needed", model=model, layers="before")
        model = Returning(lambda model, x: model.fc(model.before(x.long()).float()))
        model.before = nn.Identity()
        self.rejects("layer 'before' gives int64", model=model, layers="before")
        self.rejects("layers: none can be stored; 'before' gives int64", model=model,
                     layers=lambda name, module: name == "before")

    def test_of_layers_whose_first_axis_is_not_the_samples(self):
        model = Returning(lambda model, x: model.fc(model.before(x.t()).t()))
        model.before = nn.Identity()
        self.rejects("layer 'before' gives [6, 16] for 16 samples, where [16, ...] is needed", model=model,
                     layers="before")

    def test_of_layers_that_are_never_called(self):
        model = Returning(lambda model, x: model.fc(x))
        model.unused = nn.Linear(2, 2)
        model.unused_too = nn.Linear(2, 2)
        self.rejects("layers: 'unused' is never called in the forward pass", model=model, layers=["fc", "unused"])
        self.rejects("layers: all 2 layers of 'unused*' are never called", model=model, layers="unused*")

    def test_that_are_not_finite(self):
        model = mlp()
        with torch.no_grad():
            model[2].weight[0, 0] = float("nan")
        self.inputs[20:] += 1
        self.rejects("'features' (the input of '4') has NaN, first in sample 0; layers='*' finds", model=model)
        self.rejects("the output of layer '2' has NaN, first in sample 0", model=model, layers="*")
        self.inputs[20, 0] = float("inf")
        self.rejects("has an infinity, first in sample 20", model=nn.Sequential(nn.Identity(), nn.Linear(6, 4)))
        self.rejects("'logits' (the model's output) has NaN", model=self.returns(lambda logits: logits * float("nan")))

    def test_too_large_for_half(self):
        loader = loader_of(self.inputs * 1e6, self.labels)
        self.rejects("the output of layer '0' has numbers above 65504, which half=True cannot store", loader=loader,
                     layers="0", half=True)

    def test_that_cannot_be_pooled(self):
        model = nn.Sequential(nn.Unflatten(1, (1, 1, 1, 1, 6)), nn.Flatten(), nn.Linear(6, 4))
        self.rejects("pool=2: needs maps or tokens, got [16, 1, 1, 1, 1, 6]; use pool='flatten'", model=model, layers="0",
                     pool=2)

    def test_that_change_from_batch_to_batch(self):
        self.rejects("the output of layer '0' has the shape [5, 4] and type float32 per sample, but had [3, 4]",
                     model=nn.Sequential(nn.Linear(6, 4), nn.AdaptiveAvgPool2d((1, 4)), nn.Flatten(), nn.Linear(4, 4)),
                     loader=[(torch.randn(8, size, 6), torch.zeros(8)) for size in (3, 5)], layers="0")
        def several(model, x):
            for _ in range(len(x)):
                model.act(x)
            return model.fc(x)

        model = Returning(several)
        model.act = nn.ReLU()
        batches = [(self.inputs[:3], self.labels[:3]), (self.inputs[:2], self.labels[:2])]
        self.rejects("layer 'act' is called 3 times for the first batch and 2 times for another", model=model,
                     loader=batches, layers="act")
        model = Returning(lambda model, x: model.fc(x) if len(x) == 3 else nn.functional.linear(x, model.fc.weight))
        self.rejects("'fc' is the classifier of the first batch, and was not called for another", model=model,
                     loader=batches)

    # Of '*' and functions a layer may be left out, but not after it was stored.
    def test_of_layers_that_cannot_be_stored_later(self):
        def later(model, x):
            model.act(x if len(x) == 3 else x.t())
            return model.fc(x)

        model = Returning(later)
        model.act = nn.ReLU()
        self.rejects("layer 'act' gives [6, 2] for 2 samples", model=model, layers=lambda name, module: name == "act",
                     loader=[(self.inputs[:3], self.labels[:3]), (self.inputs[:2], self.labels[:2])])


class Loaders(Rejections):
    def test_with_other_than_inputs_and_labels(self):
        self.rejects("the loader must give (inputs, labels), inputs alone, or dicts, got a tuple of 3",
                     loader=[(self.inputs, self.labels, self.labels)])
        self.rejects("the loader gives dicts with 'x', 'y': say with inputs='...'",
                     loader=[{"x": self.inputs, "y": self.labels}])
        self.rejects("the loader gives dicts without 'z'; there are 'x', 'y'",
                     loader=[{"x": self.inputs, "y": self.labels}], inputs="x", labels="z")
        self.rejects("inputs= and labels= name entries of dicts, but the loader gives a list of 2", inputs="x")
        self.rejects("without labels the inputs must have a tensor [samples, ...], got a str", loader=[("text",)])

    def test_whose_counts_differ(self):
        self.rejects("sample counts differ: 50 logits for 49 labels", loader=[(self.inputs, self.labels[:49])])
        self.rejects("sample counts differ: 49 logits for 50 inputs", model=self.returns(lambda logits: logits[:49]),
                     loader=[self.inputs])

    def test_whose_labels_are_none(self):
        self.rejects("labels must be whole numbers, one per sample, got [50, 4]",
                     loader=[(self.inputs, torch.zeros(50, 4))])
        self.rejects("labels must be whole numbers, got float32 that are not", loader=[(self.inputs, self.inputs[:, 0])])
        self.rejects("labels must be whole numbers, one per sample, got a list of 50",
                     loader=[(self.inputs, ["cat"] * 50)])
        self.rejects("the loader must give labels with all batches or with none",
                     loader=[(self.inputs, self.labels), self.inputs])

    def test_without_samples(self):
        self.rejects("the loader gives no samples", loader=[])


class Notes(support.InFolder):
    def test_say_what_the_tool_cannot_read(self):
        with mock.patch.object(_dump_writer, "_MOST_OF_A_MEMBER", 2000):
            notes = self.notes_of(mlp(), loader_of(*rows_and_labels(60)), layers="0")
        self.assertIn("'layer/0' has 4 GiB or more, which NumPy reads but the tool does not", notes)
        self.assertNotIn("'logits'", notes)


if __name__ == "__main__":
    unittest.main()
