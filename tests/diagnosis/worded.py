"""Two versions of a code written as one, as ``git diff --word-diff`` does it."""

import re

GOES, COMES = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"


def versions(difference):
    """The code before and after it: of [-goes-]{+comes+} first "goes", then "comes"."""
    for kept, left in ((GOES, COMES), (COMES, GOES)):
        code = re.sub(left, "", difference, flags=re.DOTALL)
        yield re.sub(kept, r"\1", code, flags=re.DOTALL)
