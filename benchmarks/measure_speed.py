#!/usr/bin/python3
"""Spectra, ranks and class statistics of all layers of a ResNet-18 on 10 000 images of CIFAR-10: beside
the forward pass over the same images, and beside the usual way, features to NumPy and an SVD per layer.
Singular values are compared first.

  /usr/bin/python3 benchmarks/measure_speed.py --tool build/kelvin_measure_speed --data DATA

NumPy gets the two narrowest kinds of layers, 16384 and 8192 features; the five of 65536 and the four of
32768 are counted as if they took no longer than one of 16384, which favours NumPy.
"""
import argparse
import subprocess
import tempfile
import time

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tool", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--samples", type=int, default=10_000)
arguments = parser.parse_args()

with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    output = subprocess.run([arguments.tool, arguments.data, str(arguments.samples), file.name],
                            check=True, capture_output=True, text=True).stdout
    dump = dict(np.load(file.name))
figures = {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}

seconds = {}
for name in ("layer3.0.conv1", "layer4.0.conv1"):
    start = time.perf_counter()
    rows = dump[name] - dump[name].mean(0)
    values = np.linalg.svd(rows, compute_uv=False)
    seconds[name] = time.perf_counter() - start
    off = np.abs(dump["values/" + name][:50] / values[:50] - 1)
    print(f"{name}: {rows.shape[1]} features, NumPy {seconds[name]:.1f} s; top 50 singular values of the "
          f"sketch off by at most {100 * off.max():.2f} %, median {100 * np.median(off):.2f} %", flush=True)

extra = figures["measured"] + figures["spectra"] - figures["forward"]
usual = 13 * seconds["layer3.0.conv1"] + 4 * seconds["layer4.0.conv1"]
print(f"forward pass {figures['forward']:.1f} s; measuring adds {extra:.1f} s "
      f"({figures['spectra']:.1f} s of it spectra): {extra / figures['forward']:.2f} of a forward pass")
print(f"NumPy, at least {usual:.0f} s: {usual / extra:.0f} times as long")
print(f"accumulators {figures['bytes'] / 2**20:.0f} MiB, for ten times the images "
      f"{figures['bytes_of_ten_times'] / 2**20:.0f} MiB")
