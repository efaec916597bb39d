"""A run: what every job works with.

Its parts: what it was asked and works with (:mod:`lowtide_spark.run.base`), the oracle's low watermark and the clocks
(:mod:`lowtide_spark.run.oracle`), the tables that it works on (:mod:`lowtide_spark.run.tables`); and here the cluster,
the approved plan and the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from lowtide.errors import GatewayError, UsageError
from lowtide.journal import life
from lowtide.run import approval, hbases
from lowtide.store.gateway import connect, failures
from lowtide.store.records import Journal
from lowtide.store.rows import FAMILY
from lowtide.store.state import StateStore
from lowtide_spark.run.oracle import OracleChecks
from lowtide_spark.run.tables import TableChoice

#: How often a row that other runs write too is compared, read both ways.
_TRIES = 5
#: A gateway that takes longer counts as one that does not answer.
_GATEWAY_TIMEOUT = timedelta(seconds=5)


@dataclass
class Run(OracleChecks, TableChoice):
    """One run of a job: its low watermark, its tables, and what it checks before it begins and before it acts."""

    #: Whether the configured gateway leads to another store.
    crossed: bool = False

    def note_hbase(self) -> None:
        """Put the version of HBase's servers into the summary, with a note where it was not tried.

        Raises:
            GatewayError: the master does not answer.
        """
        self.summary.hbase = self.store.cluster().version
        if note := hbases.untried(self.summary.hbase):
            self.summary.notes.append(note)

    def check_rights(self) -> None:
        """Refuse records, a commit table and a journal of which HBase may leave something out in what it shows this
        user: what is missing there would be taken for never there.

        Raises:
            StoreError: they may not read all of one, or HBase does not tell.
        """
        omid, state = self.config.omid, self.config.state
        self.store.check_readable(
            {
                state.table: (FAMILY,),
                state.journal_table: (life.FAMILY,),
                omid.commit_table: (omid.commit_family, omid.watermark_family),
            }
        )

    def check_cluster(self) -> None:
        """Refuse records that vanish, and a gateway of another HBase than ZooKeeper leads to: what people are shown,
        and the holds that they take, would be of that other store.

        A job needs no gateway: one that does not answer is not compared.

        Raises:
            StoreError: the state table has a TTL.
            UsageError: the token that the gateway shows in the state table is not the one that is there past it.
        """
        state = self.state()
        if self.acting:
            state.create()
            state.record_format()
            state.record_cluster()
        elif not state.exists():
            return  # nothing is recorded that could be taken for this store's
        state.check_kept()
        try:
            self.crossed = not self._seen_through_gateway(state)
        except failures(GatewayError):
            return
        if not self.crossed:
            return
        table, thrift = self.config.state.table, self.config.hbase.thrift
        msg = (
            f"hbase.thrift ({thrift.host}:{thrift.port}) and hbase.zookeeper_quorum "
            f"({self.config.hbase.address}) lead to different HBase clusters: what was written to {table} through the "
            "one is not what the other reads. Correct one of them; nothing was read"
        )
        raise UsageError(msg)

    def _seen_through_gateway(self, state: StateStore) -> bool:
        """Whether the gateway shows the newest token, which another run may write between two looks."""
        thrift = self.config.hbase.thrift
        brief = thrift.model_copy(update={"timeout": min(thrift.timeout, _GATEWAY_TIMEOUT)})
        with connect(brief, attempts=1) as connection:
            behind = StateStore(connection, self.config.state.table)
            return any(state.cluster() == behind.cluster() for _ in range(_TRIES))

    def check_approved(self) -> None:
        """When everything is planned and counted: before acting, and where nothing is left to act on, as where all is
        paused since. A person who approved a plan is never told that all is well with nothing done.

        Raises:
            ApprovalError: the plan is not the one that was approved.
        """
        if self.approved is not None:
            approval.check(self.approved, [t.to_json() for t in self.summary.tables])

    @property
    def journal(self) -> Journal:
        """The journal in force, as it was when this run last looked."""
        if self._journal is None:
            self.has_journal()
        assert self._journal is not None
        return self._journal

    def has_journal(self) -> bool:
        """Whether the journal's table is there, as of now. A run that acts sees to it that journal and state say the
        same, unless the journal is paused or says no: it is read all the same.

        Raises:
            StoreError: it was, and is gone; or it has lost rows, or may have.
        """
        name = self.config.state.journal_table
        state = self.state()
        writes = self.acting and not self.store.objection(name)
        self._journal = life.checked(state.connection, state, name, acting=writes)
        return self._journal.there

    def hold_journal(self, *, horizon: int = 0, pruned: int = 0) -> None:
        """Have it recorded, in the journal and the state, that nothing up to *horizon* need be in the journal, and that
        it was *pruned* so far.

        Raises:
            ConsentError: the journal is paused, or says no; nothing may be pruned into it, nor let go of.
            StoreError: as :meth:`has_journal`; or the journal takes no row.
        """
        self.store.check_consent(self.config.state.journal_table)
        self.has_journal()
        journal = replace(
            self.journal, horizon=max(horizon, self.journal.horizon), pruned=max(pruned, self.journal.pruned)
        )
        state = self.state()
        life.hold(state.connection, state, self.config.state.journal_table, journal)
