"""Prometheus's text of what was seen of stores, by its own client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from lowtide import __version__
from lowtide.errors import UsageError
from lowtide.monitoring.metrics import GAUGES, Observation, samples


class _Stores(Collector):
    """Every metric once, with the samples of all stores below it."""

    def __init__(self, seen: Sequence[Observation]) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("lowtide_build", "The version of Lowtide that read", {"version": __version__})
        families = {g: GaugeMetricFamily(g.name, g.help, labels=("store", *g.labels)) for g in GAUGES}
        for each in self._seen:
            for sample in samples(each):
                families[sample.gauge].add_metric((each.config.store, *sample.labels), sample.value)
        yield from (family for family in families.values() if family.samples)


def exposition(seen: Sequence[Observation], accept: str = "") -> tuple[bytes, str]:
    """The text of all metrics of *seen*, stores of different names, and its media type.

    *accept* is that of a request: Prometheus asks for the newest format that it knows. Without it the format is the one
    that every reader knows, of which node_exporter takes no other.
    """
    encode, media_type = choose_encoder(accept)
    return encode(_registry(seen)), media_type


def write(seen: Sequence[Observation], file: Path) -> None:
    """Write the text to *file*, whole or not at all: a reader never sees half of it.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_to_textfile(str(file), _registry(seen))
    except OSError as error:
        fact = f"the metrics cannot be written to {file}: {error.strerror}"
        raise UsageError(fact, "give a file in a folder that is there and that this user may write to") from error


def _registry(seen: Sequence[Observation]) -> CollectorRegistry:
    """One of its own: the client's default one tells of this process."""
    registry = CollectorRegistry()
    registry.register(_Stores(seen))
    return registry
