"""Whether a table may be written to now: asked at the edge, by whatever writes or compacts, so that no job can forget
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from py4j.protocol import Py4JError

from lowtide.errors import ConsentError, StoreError
from lowtide.store.records import Claim
from lowtide.tables import consent
from lowtide_spark.frames.connector import Connector, cause


class Consent(Connector):
    """What stands against writing to tables: their owners' no, and pauses."""

    def check_consent(self, *tables: str) -> list[Claim]:
        """Refuse to write to *tables* where one of them says no, or is paused, or the store is.

        Returns:
            what stands as long as no pause of one of them begins.

        Raises:
            ConsentError: that is so.
            StoreError: HBase cannot tell.
        """
        found: list[Claim] = []
        for table in dict.fromkeys(tables):
            what, remedy, claims = self._look(table)
            if what:
                raise _refusal(table, what, remedy)
            found += claims
        return list(dict.fromkeys(found))

    def objection(self, *tables: str) -> str:
        """What stands against writing to the first of *tables* that must not be written to; empty: nothing does.

        Raises:
            StoreError: HBase cannot tell.
        """
        try:
            self.check_consent(*tables)
        except ConsentError as error:
            return str(error)
        return ""

    def objections(self, said: Mapping[str, str], *also: str) -> dict[str, str]:
        """What stands against writing to each of many tables, by name; of those without there is nothing. One look at
        the pauses serves all; whatever writes asks again.

        Args:
            said: the tables, with what their descriptors say against it (:func:`lowtide.tables.consent.veto`).
            also: what every one of them needs to be written to besides; asked for now.

        Raises:
            StoreError: HBase cannot tell.
        """
        if not said:
            return {}
        state = self.state()
        pauses = state.pauses()
        now = state.server_time() if pauses else datetime.now(UTC)
        for_all = self.objection(*also)
        found = {}
        for table, value in said.items():
            what, remedy = consent.objection(table, value, [p for p in pauses if p.table in (None, table)], now)
            if text := str(_refusal(table, what, remedy)) if what else for_all:
                found[table] = text
        return found

    def _look(self, table: str) -> tuple[str, str, Sequence[Claim]]:
        state = self.state()
        pauses, claims = state.pauses_of(table)
        now = state.server_time() if pauses else datetime.now(UTC)  # to ask for HBase's time is to write a row
        try:
            value = self._admin().attribute(self._java_options, table, consent.ATTRIBUTE)
        except Py4JError as error:
            msg = (
                f"cannot tell whether {table} may be written to: {cause(error)}; nothing more is done to it. Run again"
            )
            raise StoreError(msg) from error
        said = consent.veto({} if value is None else {consent.ATTRIBUTE: value})
        return *consent.objection(table, said, pauses, now), claims


def _refusal(table: str, what: str, remedy: str) -> ConsentError:
    return ConsentError(f"nothing (more) is written to {table}: {what}", remedy)
