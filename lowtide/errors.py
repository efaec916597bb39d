"""What can go wrong, as types.

::

    LowtideError                     exit
    ├── UsageError                      2   arguments or configuration that cannot be meant
    │   ├── ApprovalError                   the plan that was approved is no longer the plan; nothing was done
    │   └── UnnamedStoreError               no configuration says which store is meant, and more than one may be
    └── StoreError                      1   the store as it is forbids going on; what was done until then is safe
        ├── GatewayError                    the Thrift gateway, HBase or the oracle does not answer, or no more
        ├── TableError                      a table is unknown, disabled or bears no marks of Omid
        ├── WatermarkError                  the low watermark is missing or has gone back
        ├── BudgetError                     the plan is out of proportion
        ├── ConsentError                    a table's owner says no, or somebody paused it
        ├── HistoryError                    history that was asked for is gone, or about to go
        ├── FormatError                     a newer Lowtide wrote the records
        ├── FencedError                     a newer run holds the table's epoch
        └── LedgerError                     a transfer was left as it is, or the ledger's rows contradict each other

Every message names the thing, the value and the remedy.
"""

__all__ = [
    "ApprovalError",
    "BudgetError",
    "ConsentError",
    "FencedError",
    "FormatError",
    "GatewayError",
    "HistoryError",
    "LedgerError",
    "LowtideError",
    "StoreError",
    "TableError",
    "UnnamedStoreError",
    "UsageError",
    "WatermarkError",
]


#: What to do about a table that nobody knows: on a new store nothing of Lowtide lists any.
NAMES_OF_TABLES = "`list` in HBase's shell names its tables (NAMESPACE:TABLE; case counts)"


class LowtideError(Exception):
    """Base of all errors that are meant for people; ``exit_code`` is what a program ends with.

    Args:
        fact: what is so; the whole message, where that is not in two parts.
        remedy: what to do about it, for who shows that apart; a sentence of its own, or what follows a semicolon.
    """

    exit_code = 1

    def __init__(self, fact: str, remedy: str = "") -> None:
        between = ". " if remedy[:1].isupper() else "; "
        super().__init__(f"{fact}{between}{remedy}" if remedy else fact)
        self.fact = fact
        self.remedy = remedy


class UsageError(LowtideError):
    """Bad arguments or configuration."""

    exit_code = 2


class ApprovalError(UsageError):
    """The plan that was approved is no longer the plan: to ask again for the same is of no use."""


class UnnamedStoreError(UsageError):
    """No configuration says which store is meant, or which gateway is its own, and it may be another than the
    defaults' one.
    """


class StoreError(LowtideError):
    """The store's state forbids going on."""


class GatewayError(StoreError):
    """A server does not answer, or stopped answering."""


class TableError(StoreError):
    """A table cannot be worked on."""


class WatermarkError(StoreError):
    """The low watermark is missing, zero where it was not, or below one recorded before."""


class BudgetError(StoreError):
    """A plan would remove more than the budget allows."""


class ConsentError(StoreError):
    """Nothing may be written to a table: its owner says so in its descriptor, or somebody paused it, or the store."""


class HistoryError(StoreError):
    """A read point lies before the ancient history mark, or a hold cannot be kept."""


class FormatError(StoreError):
    """The records have a format that this version does not know: a newer Lowtide wrote them."""


class FencedError(StoreError):
    """A newer run has taken the table over; this one may no longer record anything."""


class LedgerError(StoreError):
    """A transfer could not go on and was left as it is, or rows of the ledger contradict each other."""
