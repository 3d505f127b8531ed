"""Group `levels`: the level of a fleet, the best few levels, who pins one, and the matrix with its page.

The fleet is the 63 kinds of real machines that can restore what they took; a choice that is known to be
the best is among 12 of them.
"""

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.data import gvisor_masks
from benchmarks.figures import Figure
from benchmarks.measure import call, interleaved
from substrate_compat.cli.matrix_page import matrix_page
from substrate_compat.levels import choose_levels, common_level
from substrate_compat.matrix import matrix, worker_of_features
from substrate_compat.whatif import pins

__all__ = ["figures"]

_MOST_REPEATS = 5


def figures(bench: Bench) -> Iterator[Figure]:
    """The figures of this group."""
    hosts = {str(number): features for number, features in enumerate(gvisor_masks())}
    workers = {name: worker_of_features(features) for name, features in hosts.items()}
    names = {
        "common_level": common_level,
        "choose_levels": choose_levels,
        "matrix": matrix,
        "matrix_page": matrix_page,
        "pins": pins,
        "few": {name: hosts[name] for name in list(hosts)[:12]},
        "fleet": {f"{name}-{copy}": features for name, features in hosts.items() for copy in range(1_000)},
        "hosts": hosts,
        "view": matrix(workers),
        "workers": workers,
    }
    kinds = len(hosts)
    least = interleaved(
        {
            f"level of {kinds} kinds": call("common_level(hosts)", names),
            f"level of {kinds} kinds, 1,000 hosts of each": call("common_level(fleet)", names),
            f"who pins the level of {kinds} kinds": call("pins(hosts)", names),
            "best 3 levels of 12 kinds": call("choose_levels(few, 3)", names),
            f"good 3 levels of {kinds} kinds": call("choose_levels(hosts, 3)", names),
            f"matrix of {kinds} kinds": call("matrix(workers)", names),
            "page of that matrix": call("matrix_page(view)", names),
        },
        min(bench.repeats, _MOST_REPEATS),
    )
    yield from (Figure(name, seconds) for name, seconds in least.items())
