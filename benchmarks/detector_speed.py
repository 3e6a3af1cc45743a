#!/usr/bin/python3
"""All out-of-distribution detectors on the same made features: kelvin beside NumPy, SciPy and scikit-learn, which
use all cores as well. Scores are compared first, to 1e-6, and to 1e-12 where they are smaller than that. Fails if
kelvin takes 10 s or more in all for 50 000 training, 10 000 ID and 26 000 OOD samples of 512 features; on a machine
that has something else to do the seconds mean little.

  /usr/bin/python3 benchmarks/detector_speed.py --tool build/kelvin_detector_speed

Seconds are those to fit and to score, without making features or reading them. --only knn vim leaves out the
others' counterparts; kelvin always runs all.
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tool", required=True)
parser.add_argument("--train", type=int, default=50_000)
parser.add_argument("--id", type=int, default=10_000)
parser.add_argument("--ood", type=int, default=26_000)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--classes", type=int, default=10)
parser.add_argument("--only", nargs="*")
arguments = parser.parse_args()
IS_FULL = (arguments.train, arguments.id, arguments.ood, arguments.width) == (50_000, 10_000, 26_000, 512)


class Samples:
    """Features h, logits m and labels y, as stored or in float64."""

    def __init__(self, h, m, y):
        self.h, self.m, self.y = h, m, y

    @staticmethod
    def read(folder, name):
        return Samples(np.fromfile(folder / f"{name}_features.f32", np.float32).reshape(-1, arguments.width),
                       np.fromfile(folder / f"{name}_logits.f32", np.float32).reshape(-1, arguments.classes),
                       np.fromfile(folder / f"{name}_labels.i64", np.int64))

    def in_doubles(self):
        return Samples(self.h.astype(float), self.m.astype(float), self.y)


def length(rows):
    return np.linalg.norm(rows, axis=1)


def energy(m):
    return logsumexp(m, axis=1)


def class_means(train):
    return np.stack([train.h[train.y == c].mean(0) for c in range(arguments.classes)])


def largest(h, share):
    """Where the largest of each row are, all but `share`."""
    removed = int(np.round(share * h.shape[1]))
    kept = np.zeros(h.shape, bool)
    np.put_along_axis(kept, np.argsort(-h, axis=1, kind="stable")[:, :h.shape[1] - removed], True, axis=1)
    return kept


# Each is fitted to the training samples and returns what scores others.


def msp(train):
    return lambda s: np.log(softmax(s.m, axis=1).max(1))


def max_logit(train):
    return lambda s: s.m.max(1)


def energy_score(train):
    return lambda s: energy(s.m)


def entropy(train):
    def score(s):
        logs = s.m - energy(s.m)[:, None]
        return np.sum(np.exp(logs) * logs, axis=1)
    return score


def gen(train):
    def score(s):
        p = np.sort(softmax(s.m, axis=1))[:, -100:]
        return -np.sum(p ** .1 * (1 - p) ** .1, axis=1)
    return score


def odin(train):
    return lambda s: np.log(softmax(s.m / 1000, axis=1).max(1))


def kl_matching(train):
    p, predicted = softmax(train.m, axis=1), train.m.argmax(1)
    usual = [p[predicted == c].mean(0) for c in range(arguments.classes) if np.any(predicted == c)]

    def score(s):
        logs = s.m - energy(s.m)[:, None]
        return -np.min([np.sum(np.exp(logs) * (logs - np.log(u)), axis=1) for u in usual], axis=0)
    return score


def react(train):
    clip = np.quantile(train.h, .9)
    return lambda s: energy(np.minimum(s.h, clip) @ W.T + B)


def ash_p(train):
    return lambda s: energy((s.h * largest(s.h, .65)) @ W.T + B)


def ash_b(train):
    def score(s):
        kept = largest(s.h, .65)
        return energy((kept * (s.h.sum(1) / kept.sum(1))[:, None]) @ W.T + B)
    return score


def ash_s(train):
    def score(s):
        kept = s.h * largest(s.h, .65)
        return energy((kept * np.exp(s.h.sum(1) / kept.sum(1))[:, None]) @ W.T + B)
    return score


def scale(train):
    def score(s):
        top = (s.h * largest(s.h, .85)).sum(1)
        return energy((s.h * np.exp(s.h.sum(1) / top)[:, None]) @ W.T + B)
    return score


def neco(train):
    scaler = StandardScaler().fit(train.h)
    pca = PCA(svd_solver="full").fit(scaler.transform(train.h))

    def score(s):
        scaled = scaler.transform(s.h)
        return length(pca.transform(scaled)[:, :arguments.classes]) / length(scaled)
    return score


def mahalanobis(train):
    means = class_means(train)
    precision = EmpiricalCovariance(assume_centered=True).fit(train.h - means[train.y]).precision_
    return lambda s: -np.min([np.sum((s.h - c) @ precision * (s.h - c), axis=1) for c in means], axis=0)


def relative_mahalanobis(train):
    nearest, everything = mahalanobis(train), EmpiricalCovariance().fit(train.h)
    return lambda s: everything.mahalanobis(s.h) + nearest(s)


def null_space(train):
    u = -np.linalg.pinv(W) @ B
    covariance = EmpiricalCovariance(assume_centered=True).fit(train.h - u).covariance_
    values, vectors = np.linalg.eigh(covariance)
    width = arguments.width
    principal = 1000 if width >= 2048 else 512 if width > 512 else 300 if width == 512 else width // 2
    rest = vectors[:, np.argsort(-values)[principal:]]
    return lambda s: length((s.h - u) @ rest)


def residual(train):
    norms = null_space(train)
    return lambda s: -norms(s)


def vim(train):
    norms = null_space(train)
    alpha = train.m.max(1).sum() / norms(train).sum()
    return lambda s: energy(s.m) - alpha * norms(s)


def knn(train):
    search = NearestNeighbors(n_neighbors=min(50, len(train.h)), algorithm="brute", n_jobs=-1)
    search.fit(normalize(train.h))
    return lambda s: -search.kneighbors(normalize(s.h))[0][:, -1]


def fdbd(train):
    mean = train.h.mean(0)
    apart = np.linalg.norm(W[:, None] - W, axis=2) + np.eye(len(W))

    def score(s):
        p = s.m.argmax(1)
        to_boundaries = (s.m.max(1, keepdims=True) - s.m) / apart[p]
        return to_boundaries.sum(1) / (len(W) - 1) / length(s.h - mean)
    return score


def nci(train):
    mean = train.h.mean(0)

    def score(s):
        z = s.h - mean
        return np.sum(W[s.m.argmax(1)] * z, axis=1) / length(z) + 1e-4 * np.abs(s.h).sum(1)
    return score


def cosine(train):
    means = class_means(train)
    return lambda s: cosine_similarity(s.h, means).max(1)


COUNTERPARTS = {"energy": energy_score, **{f.__name__: f for f in (
    msp, max_logit, entropy, gen, odin, kl_matching, react, ash_p, ash_b, ash_s, scale, neco, mahalanobis,
    relative_mahalanobis, residual, vim, knn, fdbd, nci, cosine)}}


def timed(detector, train, others):
    """Both sides start from float32 and compute in float64; of logits alone nothing else is converted."""
    of_logits = detector in (msp, max_logit, energy_score, entropy, gen, odin, kl_matching)
    prepared = lambda s: Samples(None, s.m.astype(float), s.y) if of_logits else s.in_doubles()
    begin = time.perf_counter()
    score = detector(prepared(train))
    fitted = time.perf_counter()
    scores = np.concatenate([score(prepared(s)) for s in others])
    return scores, fitted - begin, time.perf_counter() - fitted


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    words = [arguments.tool, folder, arguments.train, arguments.id, arguments.ood, arguments.width, arguments.classes]
    printed = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout
    ours = {line.split()[1]: tuple(map(float, line.split()[2:])) for line in printed.splitlines()}
    W = np.fromfile(folder / "weight.f32", np.float32).reshape(-1, arguments.width).astype(float)
    B = np.fromfile(folder / "bias.f32", np.float32).astype(float)
    train, *others = (Samples.read(folder, each) for each in ("train", "id", "ood"))
    total, compared, theirs = sum(map(sum, ours.values())), 0, 0
    for name, (fit, score) in ours.items():
        line = f"{name}: kelvin {fit:.2f} s fit, {score:.2f} s score"
        if name not in COUNTERPARTS or (arguments.only and name not in arguments.only):
            print(f"{line}; not compared", flush=True)
            continue
        expected, their_fit, their_score = timed(COUNTERPARTS[name], train, others)
        found = np.fromfile(folder / f"{name}_scores.f64")
        worst = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-6))
        assert worst <= 1e-6, f"{name}: scores differ by {worst:.1e}"
        compared, theirs = compared + fit + score, theirs + their_fit + their_score
        print(f"{line}; theirs {their_fit:.2f} s, {their_score:.2f} s: {(their_fit + their_score) / (fit + score):.1f} "
              f"times as long; scores agree to {worst:.0e}", flush=True)
if theirs:
    print(f"in all: kelvin {total:.2f} s; theirs {theirs:.1f} s, {theirs / compared:.1f} times as long as kelvin")
else:
    print(f"in all: kelvin {total:.2f} s")
assert not IS_FULL or total < 10, f"kelvin took {total:.1f} s"
