"""What PostgreSQL read to answer a statement, by its own account."""

from collections.abc import Iterator
from typing import Final

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override
from psycopg.sql import Literal
from sqlalchemy import Connection, make_url
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Node", "explain"]


@attrs.frozen
class Node:
    """A node of a plan, as `EXPLAIN (ANALYZE, FORMAT JSON)` prints it.

    Attributes:
        kind: such as `Index Only Scan`.
        table: what it reads, if a table.
        rows: what it gave for each loop.
        loops: how often it ran.
        removed: what it read for each loop and did not give.
        plans: the nodes that it takes its rows from.
    """

    kind: str
    rows: float
    loops: int
    table: str | None = None
    removed: float = 0.0
    plans: tuple["Node", ...] = ()

    @property
    def read(self) -> float:
        """How many rows it read in all."""
        return (self.rows + self.removed) * self.loops

    def __iter__(self) -> Iterator["Node"]:
        yield self
        for plan in self.plans:
            yield from plan


attrs.resolve_types(Node)


def explain(connection: Connection, statement: ClauseElement, *, generic: bool) -> Node:
    """Run `statement` as a prepared one, with a plan for its values or for any, and account for it."""
    compiled = statement.compile(dialect=_NUMBERED)
    assert isinstance(compiled, SQLCompiler)
    values = [compiled.params[name] for name in compiled.positiontup or ()]
    literals = ", ".join(Literal(value).as_string() for value in values)
    mode = "force_generic_plan" if generic else "force_custom_plan"
    for command in (f"SET LOCAL plan_cache_mode = {mode}", f"PREPARE asked AS {compiled}"):
        connection.exec_driver_sql(command)
    explained = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked({literals})"
    (plan,) = connection.exec_driver_sql(explained).scalar_one()
    connection.exec_driver_sql("DEALLOCATE asked")
    return _converter().structure(plan["Plan"], Node)


_NUMBERED: Final = make_url("postgresql+asyncpg://").get_dialect()()
"""The dialect whose parameters are $1, $2, as PREPARE wants them."""


def _converter() -> Converter:
    converter = Converter()
    read = make_dict_structure_fn(
        Node,
        converter,
        kind=override(rename="Node Type"),
        rows=override(rename="Actual Rows"),
        loops=override(rename="Actual Loops"),
        table=override(rename="Relation Name"),
        removed=override(rename="Rows Removed by Filter"),
        plans=override(rename="Plans"),
    )
    converter.register_structure_hook(Node, read)
    return converter
