"""From a task to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

#: The page's route in Airflow's own page.
ROUTE = "/plugin/lowtide"


class PageLink(BaseOperatorLink):
    """The button "Lowtide" on a task that ran a job."""

    name = "Lowtide"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:  # noqa: ARG002 - as Airflow calls it
        """The address of the page, with the store of the task where that has a name."""
        store = getattr(operator, "store", "")
        chosen = f"?{urlencode({'store': store})}" if store else ""
        return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}{ROUTE}{chosen}"
