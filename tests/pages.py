"""The code blocks of a page, run as a reader would run them: in order, in one folder.

What the first word after a fence says of a block, and what is then done with it:

- `python`: a session of `>>>`, run as a doctest; the names live on to the page's end.
- `console`: commands behind `$`, each with what it prints. `substrate-compat` is run by its command line,
  a few small programs as they are.
- `json`, `toml`, `yaml`: parsed.
- `text`: a figure, whose numbers must be those of the page's headings.

A file's name after the word (as in `json worker.json`) makes the block that file, which a later block must
use. Whatever else looks like code is an error: nothing is left out without a word.
"""

import contextlib
import doctest
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TextIO

import attrs
import yaml

from substrate_compat.cli import run

PROMPT: Final = "$ "
PROGRAMS: Final = frozenset(("cat", "cp", "cut", "grep", "head", "tail"))
FENCE: Final = "```"


class PageError(AssertionError):
    """A block that cannot be run, or does not do what the page says."""


@attrs.frozen
class Block:
    """A block of code.

    Attributes:
        line: that of its fence.
        kind: the first word after the fence.
        file: the file's name after it, or an empty text.
        text: the block, each line with its newline.
    """

    line: int
    kind: str
    file: str
    text: str

    def wrong(self, problem: str) -> PageError:
        return PageError(f"the block at line {self.line}: {problem}")


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page in Markdown.

    Raises:
        PageError: code that is in no fence of three backquotes at the line's beginning.
    """
    lines = iter(enumerate(page.split("\n"), 1))
    for number, line in lines:
        if line.startswith(FENCE):
            kind, _, file = line.removeprefix(FENCE).partition(" ")
            text = []
            for _, each in lines:
                if each == FENCE:
                    break
                text.append(each + "\n")
            else:
                raise PageError(f"the block at line {number} has no end")
            yield Block(number, kind, file, "".join(text))
        elif re.match(r"( {4}|\t)|\s*(```|~~~)|<pre", line):
            raise PageError(f"line {number} is code in no fence: {line}")


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console, on one line, and what the page says that it prints."""
    for part in re.split(rf"^{re.escape(PROMPT)}", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        yield command, expected


@attrs.define
class Session:
    """What one page's blocks did so far.

    Attributes:
        folder: where they run; empty at first.
        headings: the page's headings.
        names: of the Python blocks.
        status: the exit status of the last command.
        unused: the files that no block has used yet, each with the block that is it.
    """

    folder: Path
    headings: str
    names: dict[str, object] = attrs.field(factory=dict)
    status: int = 0
    unused: dict[str, Block] = attrs.field(factory=dict)

    def run(self, block: Block) -> None:
        """Run a block.

        Raises:
            PageError: it is not what the page says.
        """
        for name in [name for name in self.unused if name in block.text]:
            del self.unused[name]
        with contextlib.chdir(self.folder):
            if block.file:
                self._write(block)
            if block.kind in PARSERS:
                self._parse(block)
            elif block.kind == "python":
                self._python(block)
            elif block.kind == "console":
                self._console(block)
            elif block.kind == "text":
                self._figure(block)
            else:
                raise block.wrong(f"nothing runs {block.kind!r}")

    def _write(self, block: Block) -> None:
        Path(block.file).write_text(block.text)
        self.unused[block.file] = block

    def _parse(self, block: Block) -> None:
        # A file of JSON Lines has a value in each line.
        texts = block.text.splitlines() if block.file.endswith(".jsonl") else [block.text]
        for text in texts:
            try:
                PARSERS[block.kind](text)
            except (ValueError, yaml.YAMLError) as error:
                raise block.wrong(f"it is no {block.kind}: {error}") from error

    def _python(self, block: Block) -> None:
        parts = doctest.DocTestParser().parse(block.text)
        prose = [part for part in parts if isinstance(part, str) and part.strip()]
        if prose or not block.text.strip():
            raise block.wrong(f"not run, for want of `>>>`: {prose}")
        test = doctest.DocTestParser().get_doctest(block.text, self.names, "page", None, block.line)
        said = io.StringIO()
        failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.write, clear_globs=False)
        self.names = test.globs
        if failed:
            raise block.wrong(said.getvalue())

    def _figure(self, block: Block) -> None:
        if block.file:
            return
        numbers = re.findall(r"\d+", block.text)
        if not numbers or sorted(numbers) != sorted(re.findall(r"\d+", self.headings)):
            raise block.wrong("a figure has the numbers of the headings; other text needs a file's name")

    def _console(self, block: Block) -> None:
        if not block.text.startswith(PROMPT):
            raise block.wrong(f"it does not begin with {PROMPT!r}")
        for command, expected in commands(block):
            printed = self._command(block, command)
            if _without_trailing_blanks(printed) != _without_trailing_blanks(expected):
                raise block.wrong(f"`{command}` printed\n{printed}\ninstead of\n{expected}")

    def _command(self, block: Block, command: str) -> str:
        """What a pipeline prints on a terminal: its standard output, and the diagnostics of each stage."""
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>")
        lexer.whitespace_split = True
        stages: list[list[str]] = [[]]
        for word in lexer:
            if word == "|":
                stages.append([])
            else:
                stages[-1].append(word)
        shown = io.StringIO()
        text = ""
        for number, stage in enumerate(stages, 1):
            arguments, output = _redirected(stage)
            printed = shown if number == len(stages) and output is None else io.StringIO()
            self.status = self._program(block, arguments, text, printed, shown)
            text = printed.getvalue()
            if output is not None:
                Path(output).write_text(text)
        return shown.getvalue()

    def _program(
        self, block: Block, arguments: list[str], stdin: str, stdout: TextIO, stderr: TextIO
    ) -> int:
        program, *others = arguments
        if program == "substrate-compat":
            return _substrate_compat(others, stdin, stdout, stderr)
        if arguments == ["echo", "$?"]:
            stdout.write(f"{self.status}\n")
            return 0
        if program not in PROGRAMS:
            raise block.wrong(f"nothing runs {program!r} here")
        done = subprocess.run(arguments, input=stdin, capture_output=True, text=True, check=False)
        stdout.write(done.stdout)
        stderr.write(done.stderr)
        return done.returncode


def _without_trailing_blanks(text: str) -> str:
    return "\n".join(map(str.rstrip, text.split("\n"))).rstrip()


def _redirected(stage: list[str]) -> tuple[list[str], str | None]:
    if ">" in stage:
        place = stage.index(">")
        return stage[:place], stage[place + 1]
    return stage, None


def _substrate_compat(arguments: list[str], stdin: str, stdout: TextIO, stderr: TextIO) -> int:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            return run(arguments)
    finally:
        sys.stdin = before


PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda text: [*yaml.safe_load_all(text)],
}


def run_page(page: str, folder: Path) -> int:
    """Run every block of a page in `folder`, and return how many there are.

    Raises:
        PageError: a block is not what the page says, or nothing runs it.
    """
    headings = "\n".join(re.findall(r"^#.*$", page, flags=re.MULTILINE))
    session = Session(folder, headings)
    count = 0
    for block in blocks(page):
        session.run(block)
        count += 1
    for name, block in session.unused.items():
        raise block.wrong(f"no later block uses {name}")
    return count
