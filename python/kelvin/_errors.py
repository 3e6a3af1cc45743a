"""The exceptions of kelvin."""


class Error(Exception):
    """Something that the caller can mend: one line that says where, what is required and what was received."""

    __module__ = "kelvin"


class InternalError(Exception):
    """A bug in kelvin; please report it with its message."""

    __module__ = "kelvin"
