"""The transaction system: users transfer amounts to each other, without a coordinator and without locks, on plain HBase
rows.

:mod:`model` and :mod:`steps` are pure: what rows look like, and what is read and written in which order. :mod:`store`
does that on HBase, :mod:`client` is for programs, :mod:`lowtide.cli.ledger` for people. The Spark job
``transaction_repair`` runs the same steps.
"""

from lowtide.ledger.client import Ledger, init, ledger
from lowtide.ledger.model import ContradictionError, State, user_id
from lowtide.ledger.steps import Outcome

__all__ = ["ContradictionError", "Ledger", "Outcome", "State", "init", "ledger", "user_id"]
