"""What the library raises when an input could not be understood.

Every error says which input (`subject`), what is wrong with it (`problem`) and the way out
(`remedy`). Each is also the builtin that a caller may already catch. A mismatch is never an error:
it is a value.
"""

__all__ = [
    "LARGEST_TEXT",
    "CompatError",
    "ConfigError",
    "FileError",
    "HostError",
    "InputError",
    "quoted",
    "require_size",
    "shortened",
    "visible",
]

_QUOTED_CHARACTERS = 80  # a whole `sha256:` digest has 71
_SUBJECT_CHARACTERS = 200
_MIB = 1 << 20
LARGEST_TEXT = 8 * _MIB
"""The most characters of a cpuinfo, a runsc listing or a CPUID dump: 8 MiB."""


class CompatError(Exception):
    """The root of every error of this library; never raised itself.

    Attributes:
        subject: the input, as a person would find it again: a path such as `$.attributes[1].key`, a
            file name, an option. The message has it on one line, of at most 200 characters.
        problem: what is wrong with it.
        remedy: the way out, or an empty text where there is none but to correct the input.
    """

    def __init__(self, subject: str, problem: str, remedy: str = "") -> None:
        self.subject = subject
        self.problem = problem
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{shortened(self.subject)}: {self.problem}"
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


def quoted(text: str, longest: int = _QUOTED_CHARACTERS) -> str:
    r"""`text` as it may stand in a message: in quotes, escaped, and cut after `longest` characters.

    >>> quoted("avx2\n")
    "'avx2\\n'"
    >>> len(quoted("f" * 1_000_000))
    106
    """
    if len(text) <= longest:
        return ascii(text)
    return f"{text[:longest]!a}... ({len(text)} characters)"


def visible(text: str) -> str:
    r"""`text` with what cannot be seen escaped, so that no name hides or turns round the text around it.

    >>> print(visible("a\x1b[31m\u202eb\nc\u00e9"))
    a\x1b[31m\u202eb\ncé
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shortened(text: str, longest: int = _SUBJECT_CHARACTERS) -> str:
    """`text` made visible; of more than `longest` characters, at least 5, those in the middle are left out.

    >>> shortened("$.a.b.c.d.key", 9)
    '$.a...key'
    """
    # An escape has up to ten characters for one.
    return _cut(visible(_cut(text, longest)), longest)


def _cut(text: str, longest: int) -> str:
    half = (longest - len("...")) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def require_size(subject: str, text: str) -> None:
    """Refuse a text of more than 8 MiB, which no machine prints about its CPUs.

    Raises:
        InputError: the text is longer.

    >>> require_size("cpuinfo", "processor : 0")
    """
    if len(text) > LARGEST_TEXT:
        raise InputError(subject, f"{len(text)} characters; {LARGEST_TEXT // _MIB} MiB are the most")
