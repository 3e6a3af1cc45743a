"""Writes an npz whose arrays grow row by row, in memory that does not."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO

from kelvin._errors import Error

if TYPE_CHECKING:
    import numpy

_COPIED_AT_ONCE = 1 << 20
_MOST_OF_A_MEMBER = (1 << 32) - 1  # of an array that the tool reads


class _Spool:
    """The elements of one array, one after the other in a file of their own: no header yet, because it has the shape."""

    def __init__(self, path: pathlib.Path, dtype: numpy.dtype[Any], row_shape: tuple[int, ...]) -> None:
        self.path = path
        self.dtype = dtype
        self.row_shape = row_shape
        self.rows = 0
        self.is_whole = False  # not one row after the other, but an array of row_shape
        self.file: BinaryIO = open(path, "wb")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row_shape if self.is_whole else (self.rows, *self.row_shape)

    def header(self) -> bytes:
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {self.shape}, }}"
        text += " " * (63 - (10 + len(text)) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii")


class DumpWriter:
    """Collects arrays beside `path`, which appears when `finish` has written all of it, or never.

    To be used in a `with` block: what was collected is removed at its end.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._spools: dict[str, _Spool] = {}
        self._begun = 0
        # On the same file system, or the last step could not be a rename.
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))

    def __enter__(self) -> DumpWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for spool in self._spools.values():
            spool.file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def append(self, name: str, rows: numpy.ndarray[Any, Any], what: str) -> None:
        """Adds rows [count, ...] to the array `name`; `what` names it in messages."""
        spool = self._spools.get(name)
        if spool is None:
            spool = self._add(name, rows.dtype, rows.shape[1:])
        if rows.shape[1:] != spool.row_shape or rows.dtype != spool.dtype:
            raise Error(
                f"capture: {what} has the shape {_shape_text(rows.shape[1:])} and type {rows.dtype} per sample, but "
                f"had {_shape_text(spool.row_shape)} and {spool.dtype} in earlier batches")
        spool.file.write(memoryview(rows).cast("B") if rows.size else b"")
        spool.rows += rows.shape[0]

    def put(self, name: str, array: numpy.ndarray[Any, Any]) -> None:
        """Stores a whole array."""
        spool = self._add(name, array.dtype, array.shape)
        spool.is_whole = True
        spool.file.write(array.tobytes())

    def rename(self, name: str, new_name: str) -> None:
        """Takes an array's place under another name."""
        self._spools = {new_name if key == name else key: spool for key, spool in self._spools.items()}

    def drop(self, name: str) -> None:
        """Forgets an array."""
        spool = self._spools.pop(name)
        spool.file.close()
        spool.path.unlink()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays by name, in the order in which they were begun."""
        return {name: spool.shape for name, spool in self._spools.items()}

    def too_large(self) -> list[str]:
        """Names of arrays of 4 GiB and more, which NumPy reads and the tool does not."""
        return [name for name, spool in self._spools.items() if spool.file.tell() + 128 >= _MOST_OF_A_MEMBER]

    def finish(self) -> None:
        """Makes the npz of what was collected."""
        whole = self._folder / "whole"
        with open(whole, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, spool in self._spools.items():
                    spool.file.close()
                    self._store(archive, name, spool)
            file.flush()
            os.fsync(file.fileno())
        os.replace(whole, self._path)

    def _add(self, name: str, dtype: numpy.dtype[Any], row_shape: tuple[int, ...]) -> _Spool:
        self._begun += 1
        spool = _Spool(self._folder / str(self._begun), dtype, row_shape)
        self._spools[name] = spool
        return spool

    @staticmethod
    def _store(archive: zipfile.ZipFile, name: str, spool: _Spool) -> None:
        header = spool.header()
        size = len(header) + spool.path.stat().st_size
        member = zipfile.ZipInfo(f"{name}.npy")  # of 1980, so that the same arrays give the same bytes
        with archive.open(member, "w", force_zip64=size > zipfile.ZIP64_LIMIT) as out:
            out.write(header)
            with open(spool.path, "rb") as elements:
                shutil.copyfileobj(elements, out, _COPIED_AT_ONCE)
        spool.path.unlink()  # so that never more than one array is on the disk twice


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
