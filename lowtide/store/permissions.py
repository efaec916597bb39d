"""What HBase says where somebody lacks a right, for people. Pure."""

from __future__ import annotations

import re

_DENIED = re.compile(r"Insufficient permissions[^\n\\]*")
_USER = re.compile(r"user '([^']+)'|user=([^,)\s]+)")
_PLACE = re.compile(r"(?:table|scope)=([^,)\]\s]+)")
_ACTION = re.compile(r"action=(\w+)")
#: HBase's letter of each right in a grant.
_LETTERS = {"READ": "R", "WRITE": "W", "CREATE": "C", "ADMIN": "A", "EXEC": "X"}


def denial(error: object) -> str:
    """Which right is missing, to whom and where, and the grant that gives it; empty where *error*, as it prints, tells
    of something else.
    """
    found = _DENIED.search(str(error))
    if not found:
        return ""
    text = found[0]
    user = next((a or b for a, b in _USER.findall(text)), "this user")
    action = next(iter(_ACTION.findall(text)), "")
    place = next(iter(_PLACE.findall(text)), "").removeprefix("GLOBAL")
    # HBase knows a principal by its first part, unless its rules (auth_to_local) say otherwise.
    given = [f"'{re.split('[/@]', user)[0]}'", f"'{_LETTERS.get(action, 'RWCA')}'", *([f"'{place}'"] if place else [])]
    return (
        f"HBase does not let {user} do this: the right {action or 'for it'} is missing "
        f"{f'on {place}' if place else 'globally'}. As an administrator, in HBase's shell: grant {', '.join(given)}; "
        "what each job needs: docs/clusters.md, Permissions in HBase"
    )
