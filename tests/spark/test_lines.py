"""What lines of Spark differ in, as far as it needs no store."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark

CONNECTOR = Path(__file__).resolve().parents[2] / "connector"


def test_the_connectors_sources_compile_against_this_spark(tmp_path: Path) -> None:
    """The jar that is built for one line serves all of them as long as each has all of Spark that its sources use."""
    sources = [str(file) for file in (CONNECTOR / "src/main/java").rglob("*.java")]
    jars = f"{Path(pyspark.__file__).parent / 'jars'}/*:{CONNECTOR / 'target/lib'}/*"
    home = f"{os.environ['JAVA_HOME']}/bin{os.pathsep}" if "JAVA_HOME" in os.environ else ""
    compiler = shutil.which("javac", path=home + os.environ["PATH"])
    assert compiler, "no javac in JAVA_HOME or on the path"
    assert len(sources) > 20
    options = ["--release", "17", "-proc:none", "-nowarn", "-d", str(tmp_path), "-cp", jars]
    done = subprocess.run([compiler, *options, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
