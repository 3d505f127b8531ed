"""What the library raises when an input could not be understood.

Every error says which input (`subject`), what is wrong with it (`problem`) and the way out
(`remedy`). Each is also the builtin that a caller may already catch. A mismatch is never an error:
it is a value.
"""

__all__ = ["CompatError", "ConfigError", "FileError", "HostError", "InputError", "quoted", "require_size"]

_QUOTED_CHARACTERS = 80  # a whole `sha256:` digest has 71
_MIB = 1 << 20
_LARGEST_TEXT = 8 * _MIB


class CompatError(Exception):
    """The root of every error of this library; never raised itself.

    Attributes:
        subject: the input, as a person would find it again: a path such as `$.attributes[1].key`, a
            file name, an option.
        problem: what is wrong with it.
        remedy: the way out, or an empty text where there is none but to correct the input.
    """

    def __init__(self, subject: str, problem: str, remedy: str = "") -> None:
        self.subject = subject
        self.problem = problem
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.subject}: {self.problem}"
        return f"{text}; {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[type["CompatError"], tuple[str, str, str]]:
        return type(self), (self.subject, self.problem, self.remedy)


class InputError(CompatError, ValueError):
    """A text or a value could not be understood, or breaks a limit."""


class ConfigError(CompatError, ValueError):
    """A configuration from which no worker could start anything: retrying cannot help."""


class HostError(CompatError, OSError):
    """This host, or a program on it, did not tell what it was asked."""


class FileError(CompatError, OSError):
    """A file could not be read or written as a whole."""


def quoted(text: str) -> str:
    r"""`text` as it may stand in a message: in quotes, escaped, and cut after 80 characters.

    >>> quoted("avx2\n")
    "'avx2\\n'"
    >>> len(quoted("f" * 1_000_000))
    106
    """
    if len(text) <= _QUOTED_CHARACTERS:
        return ascii(text)
    return f"{text[:_QUOTED_CHARACTERS]!a}... ({len(text)} characters)"


def require_size(subject: str, text: str) -> None:
    """Refuse a text of more than 8 MiB, which no machine prints about its CPUs.

    Raises:
        InputError: the text is longer.

    >>> require_size("cpuinfo", "processor : 0")
    """
    if len(text) > _LARGEST_TEXT:
        raise InputError(subject, f"{len(text)} characters; {_LARGEST_TEXT // _MIB} MiB are the most")
