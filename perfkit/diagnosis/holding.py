"""A script that stands still at its training call, with all that it holds open.

Were it ended there, it would close its files and remove its temporary folders, and the
training reads them still. In another thread it would leave behind what TensorFlow and
Keras keep for each thread apart. So it runs in a greenlet of the thread that trains,
which hands over what it trains and is never gone back to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

# One that nobody holds would be ended, and clean up behind it.
_held: list[greenlet] = []


class Held:
    """Runs work until that hands something over."""

    def run(self, work: Callable[[], object]) -> Any:
        """Run work until it hands over, and give that; None where it came to its end.

        Raises:
            BaseException: What work raised.
        """

        def to_its_end() -> None:
            work()

        script = greenlet(to_its_end)
        _held.append(script)
        return script.switch()

    def hand_over(self, found: Any) -> None:
        """Hand over from within the work, which then stands still for ever."""
        above = getcurrent().parent
        assert above is not None
        above.switch(found)
