#!/usr/bin/python3
"""Attention with an adaptive temperature beside PyTorch's attention and beside its composition of PyTorch's operators.

    benchmarks/attention_speed.py                     # KELVIN_OPS names a library that is not beside the tool
    benchmarks/attention_speed.py --heads 8 --rounds 3

Self-attention of 512, 2048 and 8192 tokens in float32 and bfloat16. Results are compared first; then all are computed in
turn, each once before it is timed, and medians of ratios are printed, because other work on the machine slows all:

of_attention   ours over scaled_dot_product_attention, or where PyTorch has none over its composition with plain softmax
composition    the composition with the adaptive softmax over ours
memory         what that takes at its peak besides its arguments, over what ours takes
"""
import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512" if "avx512bw" in open("/proc/cpuinfo").read() else "default")

import torch  # noqa: E402

import kelvin  # noqa: E402

COEFFICIENTS = (-0.037, 0.481, -2.3, 4.917, -1.791)


def composed_softmax(logits):
    """As published, line by line."""
    probabilities = torch.softmax(logits, -1)
    entropies = -(probabilities * (probabilities + 1e-9).log()).sum(-1, keepdim=True)
    betas = torch.full_like(entropies, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        betas = betas * entropies + coefficient
    betas = torch.where(entropies > 0.5, betas.clamp_min(1), torch.ones_like(betas))
    return torch.softmax(betas * logits, -1)


def composed(q, k, v):
    return composed_softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])) @ v


def plain(q, k, v):
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), -1) @ v


WAYS = {"ours": kelvin.ops.adaptive_attention, "composed": composed, "plain": plain}


def tokens(length, heads, width, dtype):
    torch.manual_seed(0)
    # Large enough that most rows are sharpened, and not so large that entropies are small.
    return [size * torch.randn(1, heads, length, width).to(dtype) for size in (2, 1, 1)]


def seconds(function, arguments):
    function(*arguments)
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compare(length, heads, width, dtype):
    arguments = tokens(length, heads, width, dtype)
    exact = composed(*(each.double() for each in (arguments[0][:, :, :64], *arguments[1:])))
    error = (kelvin.ops.adaptive_attention(*arguments)[:, :, :64] - exact).abs().max().item()
    if error > (1e-4 if dtype == torch.float32 else 0.03):
        raise SystemExit(f"the results differ by {error}")
    return arguments


def row_of(length, arguments_of, rounds):
    heads, width, dtype = arguments_of
    arguments = compare(length, heads, width, dtype)
    times = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, function in WAYS.items():
            times[name].append(seconds(function, arguments))
    ratio = {name: statistics.median(one / ours for one, ours in zip(times[name], times["ours"])) for name in times}
    return (f"{length:6} {str(dtype).split('.')[1]:8} {1e3 * statistics.median(times['ours']):9.2f} ms "
            f"{1 / ratio['plain']:8.2f} of_attention {ratio['composed']:8.2f} composition")


def kibibytes(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1])


def growth(name, length, heads, width):
    """KiB that computing it adds at its peak to what the process has."""
    arguments = tokens(length, heads, width, torch.float32)
    WAYS[name](*(each[:, :, :64] for each in arguments))
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = kibibytes("VmRSS")
    WAYS[name](*arguments)
    return kibibytes("VmHWM") - before


def peak_of(name, length, heads, width):
    """Bytes at the peak of a process of its own, besides its arguments."""
    script = (f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); import attention_speed\n"
              f"print(attention_speed.growth({name!r}, {length}, {heads}, {width}))")
    return 1024 * int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    print(f"PyTorch {torch.__version__}, {options.threads} threads, {options.heads} heads of {options.width}, "
          f"load {os.getloadavg()[0]:.1f}")
    for dtype in (torch.float32, torch.bfloat16):
        for length in options.lengths:
            print(row_of(length, (options.heads, options.width, dtype), options.rounds), flush=True)
    longest = max(options.lengths)
    peaks = {name: peak_of(name, longest, options.heads, options.width) for name in ("ours", "composed")}
    print(f"{longest:6} memory {peaks['ours'] / 2**20:.1f} MiB, composed {peaks['composed'] / 2**20:.1f} MiB: "
          f"{peaks['composed'] / max(peaks['ours'], 1):.0f} times")


if __name__ == "__main__":
    main()
