"""Which layers patterns name."""
import unittest

import support
import torchvision
from torch import nn

from kelvin._layers import chosen_layers


class Patterns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = torchvision.models.resnet18()

    def names(self, layers):
        return [name for found in chosen_layers(self.model, layers).values() for name in found]

    def test_name_parts_between_dots(self):
        self.assertEqual(self.names("layer1"), ["layer1"])
        self.assertEqual(self.names("layer?"), ["layer1", "layer2", "layer3", "layer4"])
        self.assertEqual(self.names("layer?.*"), [f"layer{stage}.{block}" for stage in range(1, 5) for block in (0, 1)])
        self.assertEqual(self.names("layer4.?.relu"), ["layer4.0.relu", "layer4.1.relu"])
        self.assertEqual(self.names(["fc", "layer1.0.conv*"]), ["fc", "layer1.0.conv1", "layer1.0.conv2"])

    def test_cross_dots_with_two_stars(self):
        self.assertEqual(len(self.names("**.conv1")), 8)
        self.assertIn("layer2.0.downsample.0", self.names("layer2.**"))

    def test_take_other_letters_as_they_are(self):
        model = nn.ModuleDict({"a+b": nn.ReLU(), "aab": nn.ReLU()})
        self.assertEqual(chosen_layers(model, "a+b"), {"a+b": ["a+b"]})

    def test_of_one_star_are_all_layers_with_a_weight_matrix(self):
        kinds = {type(dict(self.model.named_modules())[name]) for name in self.names("*")}
        self.assertEqual(kinds, {nn.Conv2d, nn.Linear})
        encoder = nn.TransformerEncoderLayer(8, 2)
        self.assertEqual(chosen_layers(encoder, "*"), {"*": ["self_attn", "linear1", "linear2"]})

    def test_find_a_shared_layer_by_either_name(self):
        shared = nn.Linear(2, 2)
        model = nn.ModuleDict({"first": shared, "second": shared})
        self.assertEqual(chosen_layers(model, "second"), {"second": ["second"]})

    def test_of_nothing_are_none(self):
        self.assertEqual(chosen_layers(self.model, None), {})


if __name__ == "__main__":
    unittest.main()
