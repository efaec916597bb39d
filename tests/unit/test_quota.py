"""What is said of a quota of HBase's that lets nothing through."""

from __future__ import annotations

import pytest
from lowtide_spark.frames.connector import quota


@pytest.mark.parametrize(
    "text",
    [
        "callTimeout=60000, callDuration=86400000: org.apache.hadoop.hbase.quotas.RpcThrottlingException: number of "
        "read requests exceeded - wait 24hrs, 0ms\n\tat org.apache.hadoop.hbase.quotas",
        "An error occurred.\nCaused by: java.io.IOException: read size limit exceeded - wait 3ms",
    ],
)
def test_a_quota_is_named_with_the_remedy(text: str) -> None:
    """Whatever stands around it: what was exceeded, how long HBase would have one wait, and where to look."""
    said = quota(RuntimeError(text))
    assert " exceeded - wait " in said
    assert "set_quota" in said
    assert "RpcThrottlingException" not in said
    assert "\n" not in said


def test_other_errors_are_none_of_a_quota() -> None:
    """They keep their own words."""
    assert quota(RuntimeError("the retries are exhausted")) == ""
