"""Decorators turned into calls, since mutmut changes no function that has one."""

import ast
from typing import Final

__all__ = ["undecorated"]

_KEPT: Final = {"classmethod", "staticmethod"}
"""The decorators that mutmut can deal with."""


def undecorated(source: str) -> str:
    r"""`source` with `name = decorator(name)` after each function that has one plain decorator.

    >>> print(undecorated("@cache\ndef one():\n    return 1\n"))
    def one():
        return 1
    one = cache(one)
    <BLANKLINE>
    """
    lines = source.split("\n")
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for function in sorted(functions, key=lambda function: function.lineno, reverse=True):
        match function:
            case ast.FunctionDef(
                name=name, decorator_list=[ast.Name(id=decorator) as node], end_lineno=int(end)
            ) if decorator not in _KEPT:
                lines.insert(end, f"{' ' * function.col_offset}{name} = {decorator}({name})")
                del lines[node.lineno - 1]
            case _:
                pass
    return "\n".join(lines)
