"""What NumPy says of the maps to the simplex that kelvin has, one row at a time."""
import numpy as np
import torch

MAPS = ["softmax", "adaptive_softmax", "log_n", "ssmax", "sparsemax", "entmax15", "alpha_entmax", "asentmax", "sigmoid",
        "softmax_off_by_one", "top_k", "stick_breaking"]
SETTINGS = {  # besides the defaults
    "adaptive_softmax": [{"threshold": 0.2, "floor": 0.7, "coefficients": [0.0, 0.0, -0.2, 2.0, 0.1]}],
    "log_n": [{"train_length": 20}],
    "ssmax": [{"s": 0.9}],
    "alpha_entmax": [{"alpha": 1.2}, {"alpha": 2.5}],
    "asentmax": [{"alpha": 2.0, "beta": 0.3, "delta": 0.5, "gamma": 1.7}],
    "sigmoid": [{"bias": 0.5, "length_bias": False}],
    "softmax_off_by_one": [{"sink": 1.5}],
    "top_k": [{"k": 3}],
}


# Of one row of logits without masked ones.
class Oracle:
    @staticmethod
    def softmax(z):
        powers = np.exp(z - z.max())
        return powers / powers.sum()

    @staticmethod
    def adaptive_softmax(z, coefficients=(-0.037, 0.481, -2.3, 4.917, -1.791), floor=1.0, threshold=0.5):
        p = Oracle.softmax(z)
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        return Oracle.softmax(z * (max(np.polyval(coefficients, entropy), floor) if entropy > threshold else 1))

    @staticmethod
    def log_n(z, train_length=512):
        return Oracle.softmax(z * np.log(len(z)) / np.log(train_length))

    @staticmethod
    def ssmax(z, s=0.43):
        return Oracle.softmax(s * np.log(len(z)) * z)

    @staticmethod
    def alpha_entmax(z, alpha=1.5):
        z = (alpha - 1) * z
        low, high = z.max() - 1, z.max()
        for _ in range(200):
            middle = (low + high) / 2
            is_low = (np.maximum(z - middle, 0) ** (1 / (alpha - 1))).sum() > 1
            low, high = (middle, high) if is_low else (low, middle)
        return np.maximum(z - low, 0) ** (1 / (alpha - 1))

    @staticmethod
    def sparsemax(z):
        return Oracle.alpha_entmax(z, 2.0)

    @staticmethod
    def entmax15(z):
        return Oracle.alpha_entmax(z, 1.5)

    @staticmethod
    def asentmax(z, alpha=1.5, beta=1.0, delta=1.0, gamma=1.0):
        return Oracle.alpha_entmax((delta + beta * np.log(max(len(z), 2)) ** gamma) * z, alpha)

    @staticmethod
    def sigmoid(z, bias=0.0, length_bias=True):
        return 1 / (1 + np.exp(-(z + bias - (np.log(len(z)) if length_bias else 0))))

    @staticmethod
    def softmax_off_by_one(z, sink=0.0):
        return np.exp(z) / (np.exp(sink) + np.exp(z).sum())

    @staticmethod
    def top_k(z, k=8):
        chosen = np.argsort(-z, kind="stable")[:k]
        result = np.zeros_like(z)
        result[chosen] = Oracle.softmax(z[chosen])
        return result

    @staticmethod
    def stick_breaking(z):
        result, left = np.zeros_like(z), 1.0
        for i in reversed(range(len(z))):
            result[i] = left / (1 + np.exp(-z[i]))
            left -= result[i]
        return result


def expected(name, x, temperature, mask, **settings):
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape[:-1]):
        kept = mask[place].numpy()
        if kept.any():
            result[place][kept] = getattr(Oracle, name)(x[place].numpy()[kept] / temperature, **settings)
    return result


def logits_and_mask(dtype=torch.float64, sizes=(3, 4, 37)):
    generator = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(*sizes, generator=generator, dtype=torch.float64)
    mask = torch.rand(*sizes, generator=generator) < 0.7
    mask[0, 0] = False
    return x.to(dtype), mask
