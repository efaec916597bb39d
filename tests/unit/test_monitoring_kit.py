"""The folder ``monitoring/``: alert rules and dashboard name what there is, and the rules fire when they should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus import promtool

from lowtide.health import Cause
from lowtide.monitoring.metrics import GAUGES, Observation
from lowtide.monitoring.text import exposition
from tests.unit.test_docs import anchors
from tests.unit.test_monitoring import DOWN, NAMED, whole

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "monitoring" / "alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")
DASHBOARD = json.loads((ROOT / "monitoring" / "dashboard.json").read_text("utf-8"))
PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
ALERTS = [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]
LABELS = {gauge.name: {"store", *gauge.labels} for gauge in GAUGES}
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression of the folder, with where it stands."""
    yield from ((rule["alert"], rule["expr"]) for rule in ALERTS)
    yield from ((panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"])


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_expressions_name_metrics_and_labels_that_there_are(where: str, expression: str) -> None:
    """A metric that is renamed, or a label that it has not, would leave a panel empty and an alert silent for ever."""
    names = re.findall(r"lowtide_\w+", expression)
    assert names
    assert set(names) <= set(LABELS)
    for name, matchers in re.findall(r"(lowtide_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*=~?", matchers)) <= LABELS[name], where
    grouped = {label for by in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for label in by.split(", ")}
    assert grouped <= set.union(*(LABELS[name] for name in names)), where


# -- the rules


@pytest.mark.needs("prometheus")
def test_the_rules_fire_when_they_should_and_not_otherwise() -> None:
    """As some days of metrics show that promtool plays, texts included."""
    assert "SUCCESS" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", CASES)


def test_every_rule_is_seen_to_fire_and_to_keep_silent() -> None:
    """The cases have both of each."""
    cases = [case for test in yaml.safe_load(CASES.read_text("utf-8"))["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in ALERTS}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_every_rule_says_whom_it_calls_and_what_to_read() -> None:
    """The paragraph is there; of a finding, whatever its cause."""
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("page", "ticket")
        page, _, anchor = rule["annotations"]["runbook"].removeprefix("docs/").partition("#")
        wanted = {c.value for c in Cause} if "{{" in anchor else {anchor}
        assert wanted <= anchors(ROOT / "docs" / page), rule["alert"]
        assert rule["alert"] in PAGE


# -- the dashboard


def test_the_dashboard_fits_any_grafana_and_any_store() -> None:
    """Datasource and store are chosen above it; every query is of the stores that are chosen."""
    assert DASHBOARD["schemaVersion"] >= 38  # Grafana 10's; a newer one brings it up to its own
    source, store = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert (store["name"], store["query"]["query"]) == ("store", "label_values(lowtide_up, store)")
    assert not {"id", "__inputs"} & set(DASHBOARD)
    for panel in PANELS:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == "${datasource}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert target["expr"].count('store=~"$store"') == len(re.findall(r"lowtide_\w+", target["expr"]))


def test_the_panels_lie_beside_one_another() -> None:
    """Each has a number of its own, and no two share a place."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_metric_has_a_use() -> None:
    """On the dashboard or in a rule, but for those that describe another."""
    used = {name for _, expression in expressions() for name in re.findall(r"lowtide_\w+", expression)}
    beside = {
        "lowtide_state_format",
        "lowtide_regions",
        "lowtide_table_execute",
        "lowtide_paused_until_timestamp_seconds",  # of the finding that is on the dashboard
        "lowtide_history_execute",
        "lowtide_prune_bound_collected_timestamp_seconds",
        "lowtide_last_run_removed_bytes",
        "lowtide_history_mark_behind",
        "lowtide_history_mark_applied_timestamp_seconds",
        "lowtide_ledger_oldest_unfinished_timestamp_seconds",
        "lowtide_ledger_full_check_timestamp_seconds",
    }
    assert set(LABELS) - used == beside


# -- the text, the page


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize("reading", [whole(), DOWN], ids=["whole", "down"])
def test_promtool_finds_nothing_to_say_of_the_metrics(reading: Any) -> None:
    """It knows the conventions: names, units, help."""
    assert promtool("check", "metrics", given=exposition([Observation(reading, NAMED)])[0]) == ""


def test_the_page_lists_every_metric_with_its_labels() -> None:
    """And none that there is not; it is what people write their own rules by."""
    rows = re.findall(r"^\| (`lowtide_[^|]*) \|([^|]*)\|", PAGE, re.MULTILINE)
    listed = {
        name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)
    }
    assert listed.pop("lowtide_build_info") == {"version"}
    assert {name: labels | {"store"} for name, labels in listed.items()} == LABELS
