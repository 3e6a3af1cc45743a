"""What the tool measured."""

from __future__ import annotations

import difflib
import html
import itertools
from typing import TYPE_CHECKING, Any, Iterable

from kelvin._errors import Error

if TYPE_CHECKING:
    import pandas

Reading = dict[str, Any]

_PLACES = ("layer", "split", "detector", "ood", "index")
_COLUMNS = ("name", *_PLACES, "value", "low", "high", "definition")
_SHOWN_PLACES = ("layer", "split", "detector", "ood", "scaling")
_MOST_ROWS = 100


class Readings(list):  # type: ignore[type-arg]
    """A list of dicts, one for each number, with `name`, `value` and `definition`, and where they apply `layer`,
    `split`, `detector`, `ood`, `index` (of a curve), `low` and `high`.

    The first reading of a name and place is the default; the same by other definitions follow it.

        >>> readings = kelvin.measure("test.npz")
        >>> readings.value("solution_rank")
        9.0
        >>> readings.select("effective_rank").to_frame()
    """

    def __init__(self, readings: Iterable[Reading] = (), caveats: Iterable[str] = ()) -> None:
        super().__init__(readings)
        self.caveats: list[str] = list(caveats)
        """What has to be known before the numbers are believed, one sentence each."""

    def select(self, name: str | None = None, *, layer: str | None = None, split: str | None = None,
               detector: str | None = None, ood: str | None = None, index: int | None = None,
               **definition: Any) -> Readings:
        """The readings of this name and place; other keywords are entries of the definition.

            >>> readings.select("auroc", ood="svhn")
            >>> readings.select("solution_rank", gamma=0.01)
        """
        places = {"name": name, "layer": layer, "split": split, "detector": detector, "ood": ood, "index": index}
        wanted = {key: value for key, value in places.items() if value is not None}

        def is_wanted(reading: Reading) -> bool:
            defined = reading.get("definition", {})
            return (all(reading.get(key) == value for key, value in wanted.items())
                    and all(key in defined and defined[key] == value for key, value in definition.items()))

        return Readings(filter(is_wanted, self), self.caveats)

    def value(self, name: str, *, layer: str | None = None, split: str | None = None, detector: str | None = None,
              ood: str | None = None, index: int | None = None, **definition: Any) -> float:
        """The number of the first reading that `select` finds, which is the default one; an `Error` if there is none.

            >>> readings.value("auroc", detector="msp", ood="svhn")
            0.913
        """
        found = self.select(name, layer=layer, split=split, detector=detector, ood=ood, index=index, **definition)
        if not found:
            raise Error(self._absence_of(name))
        number: float = found[0]["value"]
        return number

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with a row for each reading.

            >>> readings.to_frame().query("name == 'auroc'").sort_values("value")
        """
        try:
            import pandas
        except ImportError:
            raise Error("to_frame: needs pandas: install python3-pandas, or 'pip install pandas'") from None
        columns = [column for column in _COLUMNS if any(column in reading for reading in self)]
        return pandas.DataFrame([{column: reading.get(column) for column in columns} for reading in self],
                                columns=columns)

    def __repr__(self) -> str:
        columns, rows, notes = self._table()
        widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
        lines = []
        for row in [columns, *rows]:
            cells = [cell.rjust(width) if column == "value" else cell.ljust(width)
                     for cell, width, column in zip(row, widths, columns)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines[:1] + ["  ".join("-" * width for width in widths)] + lines[1:] + notes)

    def _repr_html_(self) -> str:
        columns, rows, notes = self._table()
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Columns and rows of the default readings, and what is said below them."""
        shown: dict[tuple[str, ...], Reading] = {}
        for reading in self:
            if "index" not in reading:
                shown.setdefault((reading["name"], *_shown_places(reading)), reading)
        # What is said of the whole network comes before what is said of each layer.
        rows = sorted(shown.values(), key=lambda reading: "layer" in reading)[:_MOST_ROWS]
        is_used = [any(column) for column in zip(*map(_shown_places, rows))]
        has_intervals = any("low" in reading for reading in rows)
        columns = ["name", *itertools.compress(_SHOWN_PLACES, is_used), "value", *(["95 %"] * has_intervals)]
        cells = []
        for reading in rows:
            cells.append([reading["name"], *itertools.compress(_shown_places(reading), is_used), _text(reading["value"])])
            if has_intervals:
                cells[-1].append(f"{_text(reading['low'])} .. {_text(reading['high'])}" if "low" in reading else "")
        notes = [f"Read with care: {caveat}" for caveat in self.caveats]
        if len(self) > len(rows):
            notes.append(f"{len(self) - len(rows)} more readings: curves, other definitions"
                         + (" and further rows" if len(shown) > len(rows) else ""))
        return columns, cells, notes

    def _absence_of(self, name: str) -> str:
        names = list(dict.fromkeys(reading["name"] for reading in self))
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            return (f"no reading named '{name}'; " +
                    (f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(names) or 'none'}"))
        places = {place: list(dict.fromkeys(str(reading[place]) for reading in self
                                            if reading["name"] == name and place in reading)) for place in _PLACES}
        there = "; ".join(f"{place} {', '.join(values[:8])}" for place, values in places.items() if values)
        return f"no reading '{name}' of that place and definition; there are: {there or 'other definitions'}"


def _shown_places(reading: Reading) -> list[str]:
    scaling = reading.get("definition", {}).get("scaling", "")  # of `calibrate`, like a place
    return [str(scaling if place == "scaling" else reading.get(place, "")) for place in _SHOWN_PLACES]


def _text(number: Any) -> str:
    return f"{number:.5g}" if isinstance(number, (int, float)) else str(number)
