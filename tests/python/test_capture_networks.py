"""What kelvin.capture stores is what layers read and give, and what the tool measures of it is what NumPy finds."""
import unittest
import warnings

import support
import numpy as np
import torch
import torchvision
from support import TransformerClassifier, loader_of

import kelvin


def inputs_and_outputs(model, layer, inputs):
    """What a layer reads and gives in one forward pass of everything, by a hook of our own."""
    seen = {}

    def remember(_, given, output):
        seen["input"], seen["output"] = given[0].clone(), output.clone()

    handle = layer.register_forward_hook(remember)
    model.eval()
    with torch.no_grad():
        seen["logits"] = model(inputs)
    handle.remove()
    return {name: tensor.numpy() for name, tensor in seen.items()}


def solution_rank(logits, gamma=1e-3):
    centred = logits.astype(float) - logits.astype(float).mean(1, keepdims=True)
    values = np.linalg.svd(centred, compute_uv=False)
    return int((values > gamma * values[0]).sum())


class ResNet(support.InFolder):
    def setUp(self):
        super().setUp()
        self.model = torchvision.models.resnet18(num_classes=10)
        with torch.no_grad():  # logits of rank 4
            self.model.fc.weight.copy_(torch.randn(10, 4) @ torch.randn(4, 512))
            self.model.fc.bias.zero_()
        self.images = torch.randn(40, 3, 32, 32)
        self.labels = torch.arange(40) % 10

    def test_is_measured_as_numpy_measures_it(self):
        captured = self.capture(self.model, loader_of(self.images, self.labels))
        expected = inputs_and_outputs(self.model, self.model.fc, self.images)
        with np.load(captured) as dump:
            self.assertEqual(set(dump.files), {"logits", "labels", "features", "weight", "bias"})
            np.testing.assert_allclose(dump["features"], expected["input"], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(dump["logits"], expected["logits"], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(dump["labels"], self.labels)
            np.testing.assert_array_equal(dump["weight"], self.model.fc.weight.detach())
            np.testing.assert_array_equal(dump["bias"], self.model.fc.bias.detach())
            logits, labels = dump["logits"], dump["labels"]
        readings = kelvin.measure(captured, ["solution_rank", "accuracy"], quiet=True)
        self.assertEqual(solution_rank(logits), 4)
        self.assertEqual(readings.value("solution_rank"), 4)
        self.assertEqual(readings.value("accuracy", split="test"), (logits.argmax(1) == labels).mean())

    def test_gives_layers_as_their_hooks_see_them(self):
        loader = loader_of(self.images, self.labels)
        self.capture(self.model, loader, layers=["layer1.0.conv1", "layer?"], max_samples=20)
        with np.load(self.folder / "x.npz") as dump:
            self.assertEqual([name for name in dump.files if name.startswith("layer/")],
                             ["layer/layer1.0.conv1", "layer/layer1", "layer/layer2", "layer/layer3", "layer/layer4"])
            for name in ("layer1.0.conv1", "layer3"):
                layer = dict(self.model.named_modules())[name]
                expected = inputs_and_outputs(self.model, layer, self.images[:20])["output"]
                np.testing.assert_allclose(dump[f"layer/{name}"], expected, rtol=1e-3, atol=1e-4)
        readings = kelvin.measure(self.folder / "x.npz", "layer_spectrum", quiet=True)
        expected = torch.from_numpy(expected).flatten(1).double()
        squares = torch.linalg.svdvals(expected - expected.mean(0)) ** 2
        rank = int((squares > 1e-3 * squares[0]).sum())
        self.assertEqual(readings.value("covariance_rank", layer="layer3"), rank)

    def test_records_all_weight_layers_if_asked(self):
        captured = self.capture(self.model, loader_of(self.images, self.labels), layers="*", pool=2)
        layers = [name for name in captured.arrays if name.startswith("layer/")]
        self.assertEqual(len(layers), 21)  # 17 convolutions of the path, 3 of shortcuts, the classifier
        self.assertEqual(captured.arrays["layer/conv1"], (40, 64, 2, 2))
        self.assertEqual(captured.arrays["layer/layer4.1.conv2"], (40, 512, 1, 1))
        self.assertEqual(captured.arrays["layer/fc"], (40, 10))


class Transformer(support.InFolder):
    def setUp(self):
        super().setUp()
        self.model = TransformerClassifier()
        self.tokens = torch.randint(20, (48, 5))
        self.labels = torch.arange(48) % 4

    def test_is_measured_as_numpy_measures_it(self):
        captured = self.capture(self.model, loader_of(self.tokens, self.labels), layers="encoder.layers.*")
        expected = inputs_and_outputs(self.model, self.model.head, self.tokens)
        with np.load(captured) as dump:
            np.testing.assert_allclose(dump["features"], expected["input"], rtol=1e-4, atol=1e-5)
            logits = dump["logits"]
        readings = kelvin.measure(captured, ["solution_rank", "accuracy", "layer_spectrum"], quiet=True)
        self.assertEqual(readings.value("solution_rank"), solution_rank(logits))
        self.assertEqual(readings.value("accuracy"), (logits.argmax(1) == self.labels.numpy()).mean())
        self.assertEqual({reading["layer"] for reading in readings.select("covariance_rank")},
                         {"encoder.layers.0", "encoder.layers.1"})

    # PyTorch fuses its transformer layers when they predict, and calls no hook inside of them.
    def test_shows_what_is_inside_of_fused_layers(self):
        self.capture(self.model, loader_of(self.tokens, self.labels), layers="*")
        layer = self.model.eval().encoder.layers[0]
        embedded = self.model.embedding(self.tokens)
        with torch.no_grad():
            attention = layer.self_attn(embedded, embedded, embedded)[0]
            hidden = layer.linear1(layer.norm1(embedded + attention))
        with np.load(self.folder / "x.npz") as dump:
            for inner in ("self_attn", "linear1", "linear2"):
                self.assertEqual(dump[f"layer/encoder.layers.1.{inner}"].shape[:2], (48, 5))
            np.testing.assert_allclose(dump["layer/encoder.layers.0.self_attn"], attention, rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(dump["layer/encoder.layers.0.linear1"], hidden, rtol=1e-3, atol=1e-5)
        self.assertEqual(layer.activation_relu_or_gelu, 1)

    def test_takes_several_inputs_of_dicts_by_name(self):
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
        padding = torch.zeros(48, 5, dtype=torch.bool)
        padding[::2, 3:] = True
        batches = [{"tokens": self.tokens[at:at + 12], "padding": padding[at:at + 12], "label": self.labels[at:at + 12]}
                   for at in range(0, 48, 12)]
        for layers in (None, "*"):
            self.capture(self.model, batches, inputs=["tokens", "padding"], labels="label", layers=layers)
            self.model.eval()
            with torch.no_grad():
                expected = self.model(self.tokens, padding)
            with np.load(self.folder / "x.npz") as dump:
                np.testing.assert_allclose(dump["logits"], expected, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
