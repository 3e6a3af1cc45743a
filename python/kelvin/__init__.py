"""kelvin for people who train in PyTorch: captures what a network does with images, and measures it.

    import kelvin

    kelvin.capture(model, test_loader, "test.npz")
    readings = kelvin.measure("test.npz", ["solution_rank", "accuracy"])
    print(readings.value("solution_rank"))

`capture` needs PyTorch and NumPy, which are imported when it is called; `measure`, `ood` and `calibrate` run the tool
`kelvin` as a process of its own and need neither. `kelvin.ops` has operators for PyTorch, which is imported when that
is first named.
"""

import importlib
from types import ModuleType

from kelvin._capture import Captured, capture
from kelvin._errors import Error, InternalError
from kelvin._readings import Readings
from kelvin._tool import find_tool
from kelvin._verbs import calibrate, measure, ood

__version__ = "0.1.0"  # as in CMakeLists.txt; a test compares them

__all__ = ["Captured", "Error", "InternalError", "Readings", "calibrate", "capture", "find_tool", "measure", "ood"]


def __getattr__(name: str) -> ModuleType:
    if name == "ops":
        return importlib.import_module("kelvin.ops")
    raise AttributeError(f"module 'kelvin' has no attribute '{name}'")
