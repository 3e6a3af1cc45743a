"""kelvin.capture leaves the model, the random states, the memory and the folder as they were."""
import os
import random
import resource
import subprocess
import sys
import textwrap
import unittest

import support
import numpy as np
import torch
from support import InFolder, Returning, TransformerClassifier, loader_of, mlp, rows_and_labels
from torch import nn

import kelvin


class Fault(Exception):
    pass


def hooks_of(model):
    return [module for module in model.modules() if module._forward_hooks or module._forward_pre_hooks]


class TheModel(InFolder):
    def setUp(self):
        super().setUp()
        self.inputs, self.labels = rows_and_labels()
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 4))
        self.model.train()
        self.model[1].eval()  # one that is kept so in training

    def flags(self):
        return [module.training for module in self.model.modules()]

    def test_predicts_and_is_as_before(self):
        flags, state = self.flags(), {name: value.clone() for name, value in self.model.state_dict().items()}
        self.capture(self.model, loader_of(self.inputs, self.labels), layers="*")
        self.assertEqual(self.flags(), flags)
        self.assertEqual(hooks_of(self.model), [])
        self.assertTrue(torch.is_grad_enabled())
        for name, value in self.model.state_dict().items():
            self.assertTrue(torch.equal(value, state[name]), name)
        self.model.eval()
        with np.load(self.folder / "x.npz") as dump, torch.no_grad():
            np.testing.assert_allclose(dump["logits"], self.model(self.inputs), rtol=1e-5, atol=1e-6)

    def test_is_as_before_after_an_exception(self):
        def failing():
            yield self.inputs[:16], self.labels[:16]
            raise Fault

        flags = self.flags()
        for loader, error in ((failing(), Fault), ([(self.inputs, self.labels[:-1])], kelvin.Error),
                              ([(self.inputs[:, :3], self.labels)], RuntimeError)):
            with self.assertRaises(error):
                self.capture(self.model, loader, layers="*")
            self.assertEqual(self.flags(), flags)
            self.assertEqual(hooks_of(self.model), [])
            self.assertTrue(torch.is_grad_enabled())
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_keeps_what_can_be_trained_with(self):
        class Caching(nn.Module):  # positions are made in the first forward pass and used in all
            def __init__(self):
                super().__init__()
                self.fc, self.positions = nn.Linear(6, 4), None

            def forward(self, x):
                if self.positions is None:
                    self.positions = torch.ones(6)
                return self.fc(x * self.positions)

        model = Caching()
        self.capture(model, loader_of(self.inputs, self.labels))
        model(self.inputs).sum().backward()
        self.assertIsNotNone(model.fc.weight.grad)

    def test_is_fused_and_compiled_again_after_an_exception(self):
        model = TransformerClassifier()
        inner = model.encoder.layers[0]
        inner._compiled_call_impl = called = lambda *arguments, **named: self.fail("the compiled layer was called")
        with self.assertRaises(kelvin.Error):
            self.capture(model, [(torch.zeros(4, 5, dtype=torch.int64), torch.zeros(3))], layers="encoder.layers.0.linear1")
        self.assertIs(inner._compiled_call_impl, called)
        self.assertEqual(inner.activation_relu_or_gelu, 1)
        self.assertTrue(getattr(model.encoder, "use_nested_tensor", True))


class RandomStates(InFolder):
    def states(self, generator):
        return [torch.get_rng_state().tolist(), generator.get_state().tolist(), random.getstate(),
                np.random.get_state()[1].tolist(), np.random.get_state()[2]]

    def test_are_untouched(self):
        inputs, labels = rows_and_labels()
        generator = torch.Generator().manual_seed(3)
        noisy = Returning(lambda model, x: model.fc(x + torch.randn(1) * random.random() * np.random.rand()))
        for own in ({}, {"generator": generator}):
            loader = loader_of(inputs, labels, shuffle=True, **own)
            before = self.states(generator)
            self.capture(noisy, loader)
            self.assertEqual(self.states(generator), before)
        with self.assertRaises(kelvin.Error):
            self.capture(noisy, loader, layers="nothing")
        self.assertEqual(self.states(generator), before)


class TheFile(InFolder):
    def setUp(self):
        super().setUp()
        self.inputs, self.labels = rows_and_labels()
        self.model = mlp()

    def test_appears_when_it_is_whole(self):
        target = self.folder / "x.npz"
        target.write_bytes(b"former")

        def watched():
            for at in range(0, 50, 10):
                self.assertEqual(target.read_bytes(), b"former")
                yield self.inputs[at:at + 10], self.labels[at:at + 10]

        self.capture(self.model, watched(), layers="*")
        self.assertEqual(os.listdir(self.folder), ["x.npz"])
        kelvin.measure(target, "accuracy", quiet=True)

    def test_is_the_same_for_the_same_network(self):
        first = self.capture(self.model, loader_of(self.inputs, self.labels)).path.read_bytes()
        self.assertEqual(self.capture(self.model, loader_of(self.inputs, self.labels)).path.read_bytes(), first)

    def test_is_described(self):
        captured = self.capture(self.model, loader_of(self.inputs, self.labels), temperature=2.0)
        self.assertEqual(captured.samples, 50)
        self.assertEqual(captured.arrays["features"], (50, 8))
        self.assertEqual(captured.arrays["temperature"], ())
        self.assertIn("x.npz: 50 samples\n", repr(captured))
        self.assertIn("  weight 4x8\n", repr(captured))


class Progress(InFolder):
    def said(self, **options):
        script = textwrap.dedent("""
            import sys, support, kelvin, kelvin._progress
            kelvin._progress._SECONDS_BETWEEN_LINES = 0
            inputs, labels = support.rows_and_labels()
            kelvin.capture(support.mlp(), support.loader_of(inputs, labels), sys.argv[1], **eval(sys.argv[2]))
        """)
        command = [sys.executable, "-c", script, str(self.folder / "x.npz"), repr(options)]
        return subprocess.run(command, cwd=os.path.dirname(os.path.abspath(__file__)), check=True, capture_output=True,
                              text=True).stderr

    def test_is_said_unless_it_is_not_wanted(self):
        self.assertEqual(self.said(max_samples=30).splitlines(), ["capture: 53 %, 16 samples", "capture: 100 %, 30 samples"])
        self.assertEqual(self.said(progress=False), "")


class Memory(InFolder):
    # What it takes must not be what it writes, a hundred megabytes.
    def test_does_not_grow_with_the_number_of_samples(self):
        model = nn.Sequential(nn.Linear(8, 1 << 14), nn.Linear(1 << 14, 4))
        batch = (torch.randn(20, 8), torch.zeros(20, dtype=torch.int64))

        def peak_after(samples):
            captured = self.capture(model, (batch for _ in range(samples // 20)), layers="0", max_samples=samples)
            written = captured.path.stat().st_size
            captured.path.unlink()
            return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, written

        peak_after(80)  # what is loaded once
        few, few_written = peak_after(80)
        many, many_written = peak_after(800)
        self.assertGreater(many_written, 9 * few_written)
        self.assertGreater(many_written, 100e6)
        self.assertLess(many - few, many_written / 4)


if __name__ == "__main__":
    unittest.main()
