"""What a person sees while a campaign runs: a bar for the phase, a line for each running machine."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["Screen"]


class Screen:
    """Progress on a terminal; elsewhere a line for each phase and each machine that did not run."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._bar: TaskID | None = None
        self._machines: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._machines.values():
            self._progress.remove_task(task)
        self._progress.stop()

    def phase(self, title: str, machines: int) -> None:
        """A bar for the phase."""
        self._bar = self._progress.add_task(title, total=machines)
        if not self._progress.console.is_terminal:
            self._progress.console.print(f"{title}: {machines} machines", highlight=False)

    def step(self, model: str, step: str) -> None:
        """What a machine does now, and how many steps it has done."""
        if model not in self._machines:
            self._machines[model] = self._progress.add_task("", total=None)
        self._progress.update(self._machines[model], description=f"  {model}: {step}", advance=1)

    def ended(self, model: str, reason: str) -> None:
        """The machine's line goes."""
        if model in self._machines:
            self._progress.remove_task(self._machines.pop(model))
        if self._bar is not None:
            self._progress.advance(self._bar)
        if reason:
            self._progress.console.print(f"{model} was not run: {reason}", highlight=False, markup=False)
