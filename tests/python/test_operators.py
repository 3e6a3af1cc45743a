"""Attention, losses and measures as operators of PyTorch, all operators in compiled code, and their library."""
import doctest
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support
import numpy as np
import torch
from map_oracle import MAPS, expected

import kelvin

ops = kelvin.ops
OTHERS = ["adaptive_attention", "temperature_cross_entropy", "numerical_rank", "neco"]
class Attention(unittest.TestCase):
    def tokens(self, dtype=torch.float64, queries=11, keys=37):
        generator = torch.Generator().manual_seed(8)
        return [2 * torch.randn(2, 3, count, width, generator=generator, dtype=torch.float64).to(dtype)
                for count, width in ((queries, 8), (keys, 8), (keys, 5))]

    def test_is_that_of_numpy(self):
        padding = torch.arange(37) < torch.tensor([20, 37]).view(2, 1, 1, 1)
        for dtype, close in ((torch.float64, 1e-12), (torch.float32, 3e-5), (torch.bfloat16, 0.03)):
            q, k, v = self.tokens(dtype)
            for mask, is_causal in ((None, False), (padding, False), (None, True), (padding, True)):
                seen = torch.ones(2, 3, 11, 37, dtype=torch.bool)
                seen = seen & padding if mask is not None else seen
                seen = seen.tril() if is_causal else seen
                logits = torch.from_numpy(0.3 * (q.double().numpy() @ k.double().numpy().swapaxes(2, 3)))
                wanted = expected("adaptive_softmax", logits, 1.7, seen) @ v.double().numpy()
                result = ops.adaptive_attention(q, k, v, 1.7, mask=mask, is_causal=is_causal, scale=0.3)
                self.assertEqual(result.dtype, dtype)
                self.assertLess(np.abs(result.double().numpy() - wanted).max(), close)

    def test_has_gradients(self):
        mask = torch.rand(4, 6, generator=torch.Generator().manual_seed(9)) < 0.8
        leaves = [each.requires_grad_() for each in self.tokens(queries=4, keys=6)]
        self.assertTrue(torch.autograd.gradcheck(
            lambda q, k, v: ops.adaptive_attention(q, k, v, mask=mask, is_causal=True), leaves))
        for dtype, close in ((torch.float32, 1e-4), (torch.bfloat16, 0.1)):
            halves = [each.detach().to(dtype).requires_grad_() for each in leaves]
            exact = [each.detach().double().requires_grad_() for each in halves]
            for each in (halves, exact):
                ops.adaptive_attention(*each, mask=mask).square().sum().backward()
            for one, other in zip(halves, exact):
                self.assertEqual(one.grad.dtype, dtype)
                self.assertLess((one.grad - other.grad).abs().max(), close * other.grad.abs().max())

    def test_is_scripted_traced_and_meta(self):
        tokens = self.tokens(torch.float32)
        unit = torch.jit.CompilationUnit("def forward(q, k, v):\n"
                                         "    return torch.ops.kelvin.adaptive_attention(q, k, v, is_causal=True)\n")
        traced = torch.jit.trace(lambda q, k, v: ops.adaptive_attention(q, k, v, is_causal=True), tokens)
        wanted = ops.adaptive_attention(*tokens, is_causal=True)
        for each in (unit.forward, traced):
            self.assertTrue(torch.equal(each(*tokens), wanted))
        self.assertEqual(ops.adaptive_attention(*(each.to("meta") for each in tokens)).shape, (2, 3, 11, 5))

    def test_refuses_what_does_not_fit(self):
        q, k, v = self.tokens()
        for text, call in {
                "queries, keys and values must be of one floating type, are Double, Float and Double":
                    lambda f: f(q, k.float(), v),
                "needs queries, keys and values [samples, heads, tokens, width], got 3, 4 and 4 dimensions":
                    lambda f: f(q[0], k, v),
                "sizes of queries, keys and values must fit, are [2, 3, 11, 8], [2, 3, 37, 8] and [2, 3, 11, 8]":
                    lambda f: f(q, k, q),
                "temperature must be a finite number above 0, got -1": lambda f: f(q, k, v, -1.0),
                "scale must be above 0, got 0": lambda f: f(q, k, v, scale=0.0),
                "past_the_peak: must be fall, hold or grow, got 'stay'": lambda f: f(q, k, v, past_the_peak="stay"),
                "coefficients must be 5 numbers, of the highest power first, got 1":
                    lambda f: f(q, k, v, coefficients=[1.0]),
                "the mask must be boolean, true where a query sees a key, of at most 4 dimensions":
                    lambda f: f(q, k, v, mask=torch.ones(11, 37)),
                "the mask must have the sizes [2, 3, 11, 37] of the logits or expand to them, has [37, 11]":
                    lambda f: f(q, k, v, mask=torch.ones(37, 11, dtype=torch.bool))}.items():
            with self.assertRaises(RuntimeError) as raised:
                call(ops.adaptive_attention)
            self.assertEqual(str(raised.exception), f"adaptive_attention: {text}")


class CrossEntropy(unittest.TestCase):
    logits = 3 * torch.randn(20, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    labels = torch.arange(20) % 7

    def test_is_that_of_numpy(self):
        for temperature in (0.5, 100.0):
            for smoothing in (0.0, 0.3):
                z = self.logits.numpy() / temperature
                logs = z - np.log(np.exp(z).sum(1, keepdims=True))
                own = logs[np.arange(20), self.labels.numpy()]
                wanted = -((1 - smoothing) * own + smoothing * logs.mean(1)).mean()
                for given in (temperature, torch.tensor(temperature, dtype=torch.float64)):
                    loss = ops.temperature_cross_entropy(self.logits, self.labels, given, smoothing=smoothing)
                    self.assertAlmostEqual(loss.item(), wanted, 12)
                half = ops.temperature_cross_entropy(self.logits.bfloat16(), self.labels, temperature, smoothing=smoothing)
                self.assertEqual(half.dtype, torch.float32)
                self.assertAlmostEqual(half.item(), wanted, 1)

    def test_has_gradients_in_logits_and_temperature(self):
        temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(
            lambda z, t: 3 * ops.temperature_cross_entropy(z, self.labels, t, smoothing=0.1),
            (self.logits.clone().requires_grad_(), temperature)))

    def test_is_scripted_and_traced(self):
        source = """
def at_number(x, labels):
    # type: (Tensor, Tensor) -> Tensor
    return torch.ops.kelvin.temperature_cross_entropy(x, labels, 3.0, smoothing=0.1)
def at_tensor(x, labels, t):
    # type: (Tensor, Tensor, Tensor) -> Tensor
    return torch.ops.kelvin.temperature_cross_entropy(x, labels, t, smoothing=0.1)
"""
        unit = torch.jit.CompilationUnit(source)
        traced = torch.jit.trace(lambda x, y: ops.temperature_cross_entropy(x, y, 3.0, smoothing=0.1),
                                 (self.logits, self.labels))
        wanted = ops.temperature_cross_entropy(self.logits, self.labels, 3.0, smoothing=0.1)
        self.assertEqual(unit.at_number(self.logits, self.labels), wanted)
        self.assertEqual(unit.at_tensor(self.logits, self.labels, torch.tensor(3.0)), wanted)
        self.assertEqual(traced(self.logits, self.labels), wanted)

    def test_has_a_meta_function(self):
        loss = ops.temperature_cross_entropy(self.logits.float().to("meta"), self.labels.to("meta"), 3.0)
        self.assertEqual((loss.shape, loss.dtype, loss.device.type), ((), torch.float32, "meta"))

    def test_refuses_what_makes_no_loss(self):
        for text, call in {
                "needs logits [samples, classes] and labels [samples], got [20, 7] and [19]":
                    lambda f: f(self.logits, self.labels[1:]),
                "labels must be in [0, 7), got 7 for sample 0": lambda f: f(self.logits, self.labels + 7),
                "labels must be whole numbers, are Float": lambda f: f(self.logits, self.labels.float()),
                "logits must be floating-point numbers, are Long": lambda f: f(self.logits.long(), self.labels),
                "needs at least one sample and one class, got [0, 7]": lambda f: f(self.logits[:0], self.labels[:0]),
                "temperature must be a finite number above 0, got -2": lambda f: f(self.logits, self.labels, -2.0),
                "the temperature must be one floating-point number, is Float [2]":
                    lambda f: f(self.logits, self.labels, torch.ones(2)),
                "smoothing must be in [0, 1), is 1": lambda f: f(self.logits, self.labels, smoothing=1.0)}.items():
            with self.assertRaises(RuntimeError) as raised:
                call(ops.temperature_cross_entropy)
            self.assertEqual(str(raised.exception), f"cross_entropy: {text}")


class NumericalRank(unittest.TestCase):
    def test_is_that_of_numpy(self):
        generator = torch.Generator().manual_seed(3)
        matrices = torch.randn(5, 2, 12, 9, generator=generator) * torch.logspace(0, -5, 9)
        for gamma in (1e-1, 1e-3):
            values = np.linalg.svd(matrices.double().numpy(), compute_uv=False)
            wanted = (values > gamma * values[..., :1]).sum(-1)
            for dtype in (torch.float32, torch.float64):
                self.assertEqual(ops.numerical_rank(matrices.to(dtype), gamma).tolist(), wanted.tolist())
        self.assertEqual(ops.numerical_rank(torch.zeros(3, 3)).item(), 0)
        self.assertEqual(ops.numerical_rank(matrices.to("meta")).shape, (5, 2))
        traced = torch.jit.trace(ops.numerical_rank, (matrices,))
        scripted = torch.jit.script(ops.numerical_rank)
        for each in (traced, scripted):
            self.assertTrue(torch.equal(each(matrices), ops.numerical_rank(matrices)))

    def test_refuses_what_is_no_matrix(self):
        for text, call in {
                "needs matrices [..., rows, columns] with at least one number, got [3]": lambda f: f(torch.zeros(3)),
                "needs matrices [..., rows, columns] with at least one number, got [0, 3]": lambda f: f(torch.zeros(0, 3)),
                "matrices must be of floating-point numbers, are long int": lambda f: f(torch.ones(3, 3).long()),
                "matrices must be finite, got a NaN or an infinity": lambda f: f(torch.full((2, 2), torch.nan)),
                "gamma must be in (0, 1), got 2": lambda f: f(torch.ones(2, 2), 2.0)}.items():
            with self.assertRaises(RuntimeError) as raised:
                call(ops.numerical_rank)
            self.assertEqual(str(raised.exception), f"numerical_rank: {text}")


class Neco(unittest.TestCase):
    generator = torch.Generator().manual_seed(4)
    train = torch.randn(60, 6, generator=generator, dtype=torch.float64) @ torch.randn(
        6, 6, generator=generator, dtype=torch.float64) + 2
    features = 2 * torch.randn(9, 6, generator=generator, dtype=torch.float64)

    def test_is_that_of_numpy(self):
        for scaler in (True, False):
            for raw in (True, False):
                for dimensions in (1, 3, 5):
                    train, x = self.train.numpy(), self.features.numpy()
                    deviation = train.std(0) if scaler else 1
                    scaled = (x - train.mean(0)) / deviation
                    covariance = np.cov(((train - train.mean(0)) / deviation).T, bias=True)
                    directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :dimensions]
                    below = scaled if scaler and not raw else x
                    wanted = np.linalg.norm(scaled @ directions, axis=1) / np.linalg.norm(below, axis=1)
                    scores = ops.neco(self.features, self.train, dimensions, scaler=scaler, raw_denominator=raw)
                    self.assertLess(np.abs(scores.numpy() - wanted).max(), 1e-9)
                    single = ops.neco(self.features.float(), self.train.float(), dimensions, scaler=scaler,
                                      raw_denominator=raw)
                    self.assertEqual(single.dtype, torch.float64)
                    self.assertLess(np.abs(single.numpy() - wanted).max(), 1e-4)

    def test_leaves_directions_without_variance_out(self):
        flat = self.train.clone()
        flat[:, 3:] = 5
        torch.testing.assert_close(ops.neco(self.features, flat, 5), ops.neco(self.features, flat, 3))

    def test_has_a_gradient_and_is_scripted_and_traced(self):
        self.assertTrue(torch.autograd.gradcheck(lambda x: ops.neco(x, self.train, 3),
                                                 (self.features.clone().requires_grad_(),)))
        wanted = ops.neco(self.features, self.train, 3)
        unit = torch.jit.CompilationUnit("def forward(x, train):\n    return torch.ops.kelvin.neco(x, train, 3)\n")
        self.assertTrue(torch.equal(unit.forward(self.features, self.train), wanted))
        traced = torch.jit.trace(lambda x, train: ops.neco(x, train, 3), (self.features, self.train))
        self.assertTrue(torch.equal(traced(self.features, self.train), wanted))
        self.assertEqual(ops.neco(self.features.to("meta"), self.train.to("meta"), 3).shape, (9,))

    def test_refuses_what_it_cannot_score(self):
        for text, call in {
                "features must be [samples, dims], are of 1 dimensions": lambda f: f(self.features[0], self.train, 3),
                "training features must be floating-point numbers, are long int":
                    lambda f: f(self.features, self.train.long(), 3),
                "training features must have 6 dims as the others, have 5": lambda f: f(self.features, self.train[:, 1:], 3),
                "needs at least 2 training samples, got 1": lambda f: f(self.features, self.train[:1], 3),
                "dimensions must be in [1, 6], got 7": lambda f: f(self.features, self.train, 7),
                "training features must be finite, got a NaN or an infinity":
                    lambda f: f(self.features, self.train / 0, 3)}.items():
            with self.assertRaises(RuntimeError) as raised:
                call(ops.neco)
            self.assertEqual(str(raised.exception), f"neco: {text}")


@unittest.skipUnless(hasattr(torch, "compile"), "this PyTorch has no torch.compile")
class Compiled(unittest.TestCase):
    def assert_same(self, function, *tensors):
        """Values and gradients, in one graph, also where sizes change."""
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        for rows in (6, 4, 5):
            results = []
            for each in (function, compiled):
                leaves = [tensor[:rows].clone().requires_grad_(tensor.is_floating_point()) for tensor in tensors]
                result = each(*leaves)
                result.square().sum().backward()
                results.append((result.detach(), leaves[0].grad))
            for one, other in zip(*results):
                self.assertTrue(torch.allclose(one, other, atol=1e-6), (one - other).abs().max())

    def test_maps(self):
        x = torch.randn(6, 11, generator=torch.Generator().manual_seed(5))
        for name in MAPS:
            for dtype in (torch.float32, torch.float64):
                with self.subTest(name, dtype=dtype):
                    self.assert_same(lambda x: getattr(ops, name)(x * 2, 1.7), x.to(dtype))

    def test_masks(self):
        x = torch.randn(6, 11, generator=torch.Generator().manual_seed(5))
        self.assert_same(lambda x, mask: ops.adaptive_softmax(x, mask=mask), x, x < 1)

    def test_attention(self):
        q, k, v = (torch.randn(6, 2, 4, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2, 3))
        self.assert_same(lambda q, k, v: ops.adaptive_attention(q, k, v, is_causal=True), q, k, v)

    def test_losses_and_measures(self):
        x = torch.randn(6, 11, generator=torch.Generator().manual_seed(5))
        train = torch.randn(30, 11, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
        self.assert_same(lambda x, labels: ops.temperature_cross_entropy(x, labels, 3.0), x, torch.arange(6))
        self.assert_same(lambda x: ops.neco(x, train, 3), x)
        rank = torch.compile(ops.numerical_rank, fullgraph=True, backend="aot_eager")
        self.assertEqual(rank(x), ops.numerical_rank(x))


class Library(unittest.TestCase):
    def run_python(self, script, **variables):
        environment = {**os.environ, "PYTHONPATH": str(support.PACKAGE), **variables}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)

    def test_loads_without_the_package(self):
        done = self.run_python(f"import torch; torch.ops.load_library({ops.find_library()!r}); "
                               "print(torch.ops.kelvin.sparsemax(torch.tensor([0.0, 3.0])).tolist())")
        self.assertEqual((done.stdout, done.returncode), ("[0.0, 1.0]\n", 0), done.stderr)

    def test_is_that_of_this_interface_where_there_are_several(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, name) for name in (
                "bin/kelvin", "lib/x86_64-linux-gnu/libkelvin_ops.so", "lib/x86_64-linux-gnu/libkelvin_ops.so.0.0",
                f"lib/x86_64-linux-gnu/libkelvin_ops.so.{kelvin.__version__.rpartition('.')[0]}")]
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(0o755)
            with mock.patch.dict(os.environ, KELVIN_TOOL=str(files[0])):
                os.environ.pop("KELVIN_OPS", None)
                self.assertEqual(ops.find_library(), str(files[3].resolve()))
                files[3].unlink()
                self.assertEqual(ops.find_library(), str(files[1].resolve()))

    def test_says_what_it_lacks(self):
        done = self.run_python("import kelvin; kelvin.ops", KELVIN_OPS="/nowhere.so")
        self.assertIn("kelvin.Error: KELVIN_OPS: no file '/nowhere.so'", done.stderr)
        done = self.run_python("import kelvin; kelvin.ops", KELVIN_OPS=__file__)
        self.assertIn(f"kelvin.Error: {__file__}: cannot be loaded into PyTorch {torch.__version__}", done.stderr)
        done = self.run_python("import kelvin; kelvin.ops", KELVIN_TOOL="/bin/true")
        self.assertIn("kelvin.Error: libkelvin_ops.so was not found beside the tool", done.stderr)

    def test_has_a_function_for_every_operator(self):
        schemas = [each for each in torch._C._jit_get_all_schemas() if each.name.startswith("kelvin::")]
        names = {each.name.split("::")[1] for each in schemas}
        self.assertEqual({name for name in names if not name.startswith("_")}, {*MAPS, *OTHERS})
        for schema in schemas:
            name = schema.name.split("::")[1]
            if name.startswith("_") or schema.overload_name:
                continue
            parameters = inspect.signature(getattr(ops, name)).parameters.values()
            self.assertEqual([(each.name, each.kind is each.KEYWORD_ONLY) for each in parameters],
                             [(each.name, each.kwarg_only) for each in schema.arguments])
            for each, argument in zip(parameters, schema.arguments):
                if argument.has_default_value():
                    self.assertEqual(each.default, argument.default_value, f"{name}: {argument.name}")

    def test_has_examples_that_are_true(self):
        names = {"kelvin": kelvin, "torch": torch}
        failures = []
        for test in doctest.DocTestFinder().find(ops, extraglobs=names):
            if test.examples and not test.name.endswith("find_library"):
                doctest.DocTestRunner().run(test, out=failures.append)
        self.assertEqual("".join(failures), "")
        for name in [*MAPS, *OTHERS]:
            self.assertIn(">>> ", getattr(ops, name).__doc__)


if __name__ == "__main__":
    unittest.main()
