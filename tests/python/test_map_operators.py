"""Maps to the simplex as operators of PyTorch: values by NumPy, gradients, TorchScript, traces, errors."""
import io
import unittest

import support  # noqa: F401
import numpy as np
import torch
from map_oracle import MAPS, SETTINGS, expected, logits_and_mask

import kelvin

ops = kelvin.ops


class Maps(unittest.TestCase):
    def each(self):
        for name in MAPS:
            for settings in [{}, *SETTINGS.get(name, [])]:
                with self.subTest(name, **settings):
                    yield name, getattr(ops, name), settings

    def test_are_those_of_numpy(self):
        for dtype, close in ((torch.float64, 1e-12), (torch.float32, 3e-5), (torch.bfloat16, 4e-3)):
            x, mask = logits_and_mask(dtype)
            for name, function, settings in self.each():
                for temperature in (1.0, 1.7):
                    result = function(x, temperature, mask=mask, **settings)
                    self.assertEqual(result.dtype, dtype)
                    wanted = expected(name, x.double(), temperature, mask, **settings)
                    self.assertLess(np.abs(result.double().numpy() - wanted).max(), close)
                    self.assertTrue((result[~mask] == 0).all())

    def test_mask_like_infinity_and_expand_masks(self):
        x, _ = logits_and_mask()
        mask = torch.rand(4, 1, generator=torch.Generator().manual_seed(1)) < 0.5
        for _, function, settings in self.each():
            direct = function(x.masked_fill(~mask, -torch.inf), **settings)
            self.assertTrue(torch.equal(function(x, mask=mask, **settings), direct))
            self.assertTrue(torch.equal(function(x, mask=mask.expand(3, 4, 37), **settings), direct))

    def test_go_along_any_dimension(self):
        x, mask = logits_and_mask()
        for _, function, settings in self.each():
            for dim in (0, 1, -2):
                turned = function(x.transpose(dim, -1), 2.0, mask=mask.transpose(dim, -1), **settings).transpose(dim, -1)
                self.assertLess((function(x, 2.0, dim=dim, mask=mask, **settings) - turned).abs().max(), 1e-15)

    def test_have_the_gradient_of_central_differences(self):
        x, mask = logits_and_mask(sizes=(2, 2, 9))
        for _, function, settings in self.each():
            leaf = x.clone().requires_grad_()
            self.assertTrue(torch.autograd.gradcheck(lambda z: function(z, 1.7, mask=mask, **settings), (leaf,)))
            single = x.float().requires_grad_()
            weights = torch.arange(36.0).view(2, 2, 9)
            (function(leaf, 1.7, mask=mask, **settings) * weights).sum().backward()
            (function(single, 1.7, mask=mask, **settings) * weights).sum().backward()
            self.assertLess((single.grad - leaf.grad).abs().max(), 1e-3)

    def test_have_first_gradients_in_half_precision(self):
        x, mask = logits_and_mask(torch.bfloat16)
        for _, function, settings in self.each():
            leaf = x.clone().requires_grad_()
            (function(leaf, mask=mask, **settings) * torch.arange(37)).sum().backward()
            self.assertEqual(leaf.grad.dtype, torch.bfloat16)
            self.assertTrue(leaf.grad.isfinite().all())

    def test_are_scripted_traced_and_saved(self):
        x, mask = logits_and_mask(torch.float32)
        for name, function, settings in self.each():
            words = "".join(f", {key}={value!r}" for key, value in settings.items())
            source = (f"def forward(x, mask):\n    # type: (Tensor, Tensor) -> Tensor\n"
                      f"    return torch.ops.kelvin.{name}(x, 1.7, mask=mask{words})\n")
            unit = torch.jit.CompilationUnit(source)
            traced = torch.jit.trace(lambda x, mask: function(x, 1.7, mask=mask, **settings), (x, mask))
            file = io.BytesIO()
            torch.jit.save(traced, file)
            file.seek(0)
            wanted = function(x, 1.7, mask=mask, **settings)
            other = x.flip(0)
            for each in (unit.forward, traced, torch.jit.load(file)):
                self.assertTrue(torch.equal(each(x, mask), wanted))
                self.assertTrue(torch.equal(each(other, mask), function(other, 1.7, mask=mask, **settings)))
                leaf = x.clone().requires_grad_()
                each(leaf, mask).square().sum().backward()
                self.assertGreater(leaf.grad.abs().max(), 0)

    def test_have_meta_functions(self):
        for _, function, settings in self.each():
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                x = torch.empty(2, 5, 7, device="meta", dtype=dtype)
                result = function(x, 2.0, mask=torch.empty(5, 1, device="meta", dtype=torch.bool), **settings)
                self.assertEqual((result.shape, result.dtype, result.device.type), (x.shape, dtype, "meta"))

    def test_of_no_rows_is_no_rows(self):
        for _, function, settings in self.each():
            self.assertEqual(function(torch.zeros(0, 3), **settings).shape, (0, 3))

    def test_refuse_what_they_cannot_map(self):
        x, mask = logits_and_mask(torch.float32)
        cases = {
            "temperature must be a finite number above 0, got -1": lambda f: f(x, -1.0),
            "temperature must be a finite number above 0, got nan": lambda f: f(x, float("nan")),
            "logits must be floating-point numbers, are long int": lambda f: f(x.long()),
            "logits must be [..., classes], got [2, 0]": lambda f: f(torch.zeros(2, 0)),
            "logits must be [..., classes], got []": lambda f: f(torch.tensor(1.0)),
            "logits must be dense, are Sparse": lambda f: f(x.to_sparse()),
            "dim must be in [-3, 3), got 3": lambda f: f(x, dim=3),
            "the mask must be boolean, true where a logit takes part, is float": lambda f: f(x, mask=mask.float()),
            "the mask must have the sizes [3, 4, 37] of the logits or expand to them, has [3, 37]":
                lambda f: f(x, mask=mask[:, 0]),
            "or expand to them, has [1, 3, 4, 37]": lambda f: f(x, mask=mask[None]),
        }
        for name, function, _ in self.each():
            for text, call in cases.items():
                with self.assertRaisesRegex(RuntimeError, "(?s)^" + name) as raised:
                    call(function)
                self.assertIn(text, str(raised.exception))
                self.assertNotIn("\n", str(raised.exception))
        for text, call in {
                "top_k.k: must be at least 1, got 0": lambda: ops.top_k(x, k=0),
                "alpha_entmax.alpha: must be a finite number above 1": lambda: ops.alpha_entmax(x, alpha=1.0),
                "adaptive_softmax.past_the_peak: must be fall, hold or grow, got 'stay'":
                    lambda: ops.adaptive_softmax(x, past_the_peak="stay"),
                "adaptive_softmax.coefficients: must be 5 numbers": lambda: ops.adaptive_softmax(x, coefficients=[1.0]),
        }.items():
            with self.assertRaises(RuntimeError) as raised:
                call()
            self.assertTrue(str(raised.exception).startswith(text), raised.exception)

    # Operators below those that users call, too.
    def test_kernels_refuse_what_would_crash_them(self):
        kernels = torch.ops.kelvin
        x = torch.zeros(2, 3)
        for call in (lambda: kernels._adaptive_softmax_rows(x.long(), [0.0] * 5, 1.0, 0.5, 0, 1.0, True, True),
                     lambda: kernels._adaptive_softmax_rows(x, [0.0], 1.0, 0.5, 0, 1.0, True, True),
                     lambda: kernels._adaptive_softmax_rows(x.t(), [0.0] * 5, 1.0, 0.5, 0, 1.0, True, True),
                     lambda: kernels._adaptive_softmax_gradient(x, torch.zeros(8, 1), x, 1.0, False),
                     lambda: kernels._adaptive_softmax_gradient(x, torch.zeros(8, 2), x[:1], 1.0, False),
                     lambda: kernels._cross_entropy_rows(x, torch.tensor([0, 7]), torch.tensor(1.0), 0.0, True)):
            self.assertRaises(RuntimeError, call)


if __name__ == "__main__":
    unittest.main()
