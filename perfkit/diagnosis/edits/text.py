"""Source text that is changed in a few places, found by its tree; all else stays."""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# From where to where, in characters of the source, and what goes there instead.
Splice = tuple[int, int, str]
Placed = ast.expr | ast.stmt | ast.keyword
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
# What a method can be called on without brackets around it.
_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


@dataclass(frozen=True)
class Item:
    """One of several between brackets: where it begins and ends, and its comma.

    Attributes:
        start: Of its first character.
        end: Behind its last one.
        comma: Behind its comma; 0 where it has none.
    """

    start: int
    end: int
    comma: int = 0


class Text:
    """The text of a source, and what to do to it.

    Args:
        source: Its lines end in a line feed.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        read = tokenize.generate_tokens(io.StringIO(source).readline)
        self._tokens = [
            (self._at(*one.start), self._at(*one.end), one.string)
            for one in read
            if one.type not in _LAYOUT and one.type != tokenize.COMMENT
        ]

    def start(self, node: Placed) -> int:
        """Where a node begins, in characters."""
        return self._of_bytes(node.lineno, node.col_offset)

    def end(self, node: Placed) -> int:
        """Where a node ends, in characters."""
        return self._of_bytes(node.end_lineno or 1, node.end_col_offset or 0)

    def applied(self, splices: Iterable[Splice]) -> str:
        """The source with all changes; those at one place in the order given.

        Raises:
            ValueError: Two of them change the same characters.
        """
        made, done = [], 0
        for start, end, new in sorted(splices, key=lambda one: one[0]):
            if start < done:
                raise ValueError("Two changes of one place.")
            made += [self.source[done:start], new]
            done = end
        return "".join([*made, self.source[done:]])

    def add(self, within: ast.expr, item: str) -> Iterator[Splice]:
        """One more item at the end of a call, a list, a dict or a tuple."""
        items, (opened, closed) = self.items(within), self._brackets(within)
        if not items:
            yield opened, opened, item
            return
        last = items[-1]
        if not (self._begins_line(last.start) and self._begins_line(closed)):
            yield last.end, last.end, f", {item}"
            return
        if not last.comma:
            yield last.end, last.end, ","
        line_end = self._line_end(last.comma or last.end)
        comma = "," * bool(last.comma)
        yield line_end, line_end, f"\n{self._indent(last.start)}{item}{comma}"

    def replace(self, within: ast.expr, place: int, item: str) -> Iterator[Splice]:
        """Another item in the place of one."""
        one = self.items(within)[place]
        yield one.start, one.end, item

    def remove(self, within: ast.expr, place: int) -> Iterator[Splice]:
        """Leave an item out, with its comma, and with its lines if it has its own."""
        items = self.items(within)
        one = items[place]
        behind = one.comma or one.end
        if len(items) == 1:
            opened, closed = self._brackets(within)
            yield opened, closed, ""
        elif self._begins_line(one.start) and self._ends_line(behind):
            yield self._starts[self._line_of(one.start)], self._line_end(behind) + 1, ""
        elif place + 1 < len(items):
            yield one.start, items[place + 1].start, ""
        else:
            yield items[place - 1].end, one.end, ""

    def delete(self, statement: ast.stmt, body: Sequence[ast.stmt]) -> Iterator[Splice]:
        """Leave a statement out of a body; nothing where it shares its line."""
        start, end = self.start(statement), self.end(statement)
        if len(body) == 1:
            yield start, end, "pass"
        elif self._begins_line(start) and self._ends_line(end):
            yield self._starts[self._line_of(start)], self._line_end(end) + 1, ""

    def call_on(self, node: ast.expr, method: str) -> Iterator[Splice]:
        """Call one more method, such as ``".cache()"``, on what an expression gives."""
        start, end = self.start(node), self.end(node)
        if not isinstance(node, _PLAIN):
            yield start, start, "("
            yield end, end, f"){method}"
            return
        indent = self._indent_of_dot(node)
        if indent is None:
            yield end, end, method
            return
        # A comment stays with the line that it belongs to.
        place = self._line_end(end) if self._ends_line(end) else end
        yield place, place, f"\n{indent}{method}"

    def items(self, within: ast.expr) -> list[Item]:
        """What stands between the brackets of a call, a list, a dict or a tuple."""
        opened, closed = self._brackets(within)
        tokens = [one for one in self._tokens if opened <= one[0] < closed]
        return list(_items(tokens, [self.end(one) for one in nodes_in(within)]))

    def _brackets(self, node: ast.expr) -> tuple[int, int]:
        """Where what stands between a node's last pair of brackets begins and ends."""
        end, depth = self.end(node), 0
        for start, behind, said in reversed(self._tokens):
            if behind > end:
                continue
            depth += (said in _CLOSES) - (said in _OPENS)
            if not depth:
                own = isinstance(node, ast.Call) or start == self.start(node)
                if own and said in _OPENS:
                    return behind, end - 1
                break
        # A tuple may have none of its own.
        return self.start(node), end

    def _indent_of_dot(self, node: ast.expr) -> str | None:
        """The indentation of a method that begins a line; None where it does not."""
        function = node.func if isinstance(node, ast.Call) else None
        if not isinstance(function, ast.Attribute):
            return None
        name = self.end(function) - len(function.attr)
        dot = max(a for a, _, said in self._tokens if said == "." and a < name)
        before = self._lines[self._line_of(dot) - 1]
        if not self._begins_line(dot) or before.endswith("\\"):
            return None
        return self._indent(dot)

    def _begins_line(self, place: int) -> bool:
        return not self.source[self._starts[self._line_of(place)] : place].strip()

    def _ends_line(self, place: int) -> bool:
        rest = self.source[place : self._line_end(place)].strip()
        return not rest or rest.startswith("#")

    def _indent(self, place: int) -> str:
        line = self._lines[self._line_of(place)]
        return line[: len(line) - len(line.lstrip())]

    def _line_end(self, place: int) -> int:
        return self._starts[self._line_of(place) + 1] - 1

    def _line_of(self, place: int) -> int:
        return self.source.count("\n", 0, place)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _of_bytes(self, line: int, column: int) -> int:
        """A column of the tree counts bytes of UTF-8."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._at(line, len(before))


def nodes_in(within: ast.expr) -> list[ast.expr | ast.keyword]:
    """The items of a call, a list, a dict or a tuple, in the order of the source."""
    if isinstance(within, ast.Call):
        given: list[ast.expr | ast.keyword] = [*within.args, *within.keywords]
        return sorted(given, key=lambda one: (one.lineno, one.col_offset))
    if isinstance(within, ast.Dict):
        return [*within.values]
    return [*getattr(within, "elts", ())]


def _items(tokens: Sequence[tuple[int, int, str]], ends: list[int]) -> Iterator[Item]:
    """Cut tokens at the commas behind each item; a lambda has commas of its own."""
    depth, first, last = 0, -1, 0
    waiting = list(ends)
    for start, behind, said in tokens:
        if said == "," and not depth and waiting and start >= waiting[0]:
            waiting.pop(0)
            yield Item(first, last, behind)
            first = -1
            continue
        depth += (said in _OPENS) - (said in _CLOSES)
        first = start if first < 0 else first
        last = behind
    if first >= 0:
        yield Item(first, last)
