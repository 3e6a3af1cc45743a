"""How far a piece of work is, on stderr."""

from __future__ import annotations

import sys
import time

_SECONDS_BETWEEN_DRAWINGS = 0.1
_SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """One line that is drawn over itself on a terminal, a line every few seconds elsewhere."""

    def __init__(self, label: str, is_shown: bool) -> None:
        self._label = label
        self._is_shown = is_shown and sys.stderr is not None
        self._on_terminal = self._is_shown and sys.stderr.isatty()
        self._shown = time.monotonic()
        self._is_drawn = False

    def show(self, text: str, fraction: float | None) -> None:
        """As often as the caller likes; `fraction` is unknown if it is None."""
        now = time.monotonic()
        pause = _SECONDS_BETWEEN_DRAWINGS if self._on_terminal else _SECONDS_BETWEEN_LINES
        if not self._is_shown or now - self._shown < pause:
            return
        self._shown = now
        percent = "" if fraction is None else f" {100 * min(fraction, 1.0):.0f} %,"
        line = f"{self._label}:{percent} {text}"
        sys.stderr.write(f"\r{line}\x1b[K" if self._on_terminal else f"{line}\n")
        sys.stderr.flush()
        self._is_drawn = self._on_terminal

    def clear(self) -> None:
        """Leaves the terminal as if nothing had been drawn."""
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False
