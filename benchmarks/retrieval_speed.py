#!/usr/bin/python3
"""A training step of the network for max retrieval, 128 sets of 5 to 16 items: kelvin against PyTorch
as one writes it (keys and values of every item, a mask), and against PyTorch with kelvin's order of
products. The same weights and sets; losses of the first steps are compared, then interleaved rounds,
medians and ratios.

  /usr/bin/python3 benchmarks/retrieval_speed.py --tool build/kelvin_retrieval_speed
"""
import argparse
import math
import os
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tool", required=True)
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--threads", type=int, default=os.cpu_count())
arguments = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(arguments.threads)
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(arguments.threads)
BATCHES = 32


class Retrieval(nn.Module):
    def __init__(self, width=128, classes=10):
        super().__init__()
        mlp = lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, outputs))
        self.psi_x, self.psi_q, self.phi = mlp(1 + classes, width), mlp(1, width), mlp(width, classes)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.scale = 1 / math.sqrt(width)

    def forward(self, items, queries, masked):
        x = self.psi_x(items)
        q = self.query(self.psi_q(queries))
        scores = torch.bmm(self.key(x), q.unsqueeze(2)).squeeze(2) * self.scale
        weights = torch.softmax(scores.masked_fill(masked, -math.inf), 1)
        return self.phi(torch.bmm(weights.unsqueeze(1), self.value(x)).squeeze(1))


class Rearranged(Retrieval):
    def forward(self, items, queries, masked):
        h = self.psi_x[1](self.psi_x[0](items))
        k = self.query(self.psi_q(queries)) @ self.key.weight
        scores = torch.bmm(h, (k @ self.psi_x[2].weight).unsqueeze(2)).squeeze(2)
        scores = (scores + (k @ self.psi_x[2].bias).unsqueeze(1)) * self.scale
        weights = torch.softmax(scores.masked_fill(masked, -math.inf), 1)
        return self.phi(self.value(self.psi_x[2](torch.bmm(weights.unsqueeze(1), h).squeeze(1))))


class PyTorch:
    def __init__(self, kind, data):
        self.model = kind()
        self.model.load_state_dict({name[len("weights/"):]: torch.from_numpy(array)
                                    for name, array in data.items() if name.startswith("weights/")})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=1e-3, foreach=True)
        self.batches = []
        for i in range(BATCHES):
            get = lambda name: torch.from_numpy(data[f"{name}/{i}"])
            items = torch.cat([get("priorities").unsqueeze(2), F.one_hot(get("classes"), 10).float()], 2)
            masked = torch.arange(items.shape[1]) >= get("sizes").unsqueeze(1)
            self.batches.append((items, get("queries").unsqueeze(1), masked, get("labels")))
        self.at = 0

    def steps(self, count):
        losses = []
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(count):
            items, queries, masked, labels = self.batches[self.at % BATCHES]
            self.at += 1
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(items, queries, masked), labels)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return time.perf_counter() - start, time.process_time() - cpu_start, losses


class Kelvin:
    def __init__(self, path):
        self.process = subprocess.Popen([arguments.tool, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def steps(self, count):
        print(count, file=self.process.stdin, flush=True)
        seconds, cpu_seconds, *losses = map(float, self.process.stdout.readline().split())
        return seconds, cpu_seconds, losses


with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    kelvin = Kelvin(file.name)
    data = dict(np.load(file.name))
sides = {"kelvin": kelvin, "PyTorch": PyTorch(Retrieval, data), "PyTorch, rearranged": PyTorch(Rearranged, data)}
first = {name: side.steps(20)[2] for name, side in sides.items()}
for name, losses in first.items():
    difference = max(abs(a - b) for a, b in zip(losses, first["kelvin"]))
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, at most {difference:.1e} from kelvin's in 20 steps")
    assert difference < 1e-3
times = {name: [] for name in sides}
for _ in range(arguments.rounds):
    for name, side in sides.items():
        times[name].append([seconds / arguments.steps for seconds in side.steps(arguments.steps)[:2]])
print(f"torch {torch.__version__}, {arguments.threads} threads, median of {arguments.rounds} rounds of {arguments.steps} steps")
# The processor's time does not see other programs beside these.
for place, what in enumerate(("elapsed", "processor")):
    ours = statistics.median(each[place] for each in times["kelvin"])
    for name, rounds in times.items():
        each = [of_round[place] for of_round in rounds]
        median = statistics.median(each)
        print(f"{what}, {name}: {1000 * median:.2f} ms ({1000 * min(each):.2f} to {1000 * max(each):.2f}), "
              f"{median / ours:.2f} x kelvin's")
