"""One stack for all tests here; `--keep` leaves it up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from composed import PROJECT, Composed, ComposeError, tell

from lowtide.lab.airflow.dags import Dags
from lowtide.lab.airflow.rest import Rest


def pytest_addoption(parser: pytest.Parser) -> None:
    """--keep."""
    parser.addoption("--keep", action="store_true", help="leave the stack up when the tests are over")


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    """The stack, up and well; what an earlier run left is removed first."""
    try:
        composed = Composed(tmp_path_factory.mktemp("compose"))
        composed.down()
        composed.build()
        tell("starting it")
        composed.up()
    except ComposeError as error:
        pytest.exit(f"compose-test: {error}", returncode=1)
    yield composed
    if request.config.getoption("--keep"):
        tell(
            f"\nAirflow: {composed.airflow}, user admin; end it: {' '.join(composed.command)} -p {PROJECT} "
            "down --volumes"
        )
    else:
        composed.down()


@pytest.fixture(scope="session")
def rest(stack: Composed) -> Rest:
    """Airflow's API, as admin."""
    return Rest(stack.airflow, stack.password)


@pytest.fixture(scope="session")
def dags(rest: Rest) -> Dags:
    """The DAGs in it."""
    return Dags(rest, lambda _: "")
