"""Puts into the wheel what is no Python module: the DAG files, the Spark programs, the connector, rules and dashboard
for monitoring. All else is in pyproject.toml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
#: Folder of the package ``lowtide`` in the wheel (see lowtide/paths.py) to files of the checkout.
SHIPPED = {
    "dags": "dags/*.py",
    "spark_apps": "spark_apps/*.py",
    "monitoring": "monitoring/*",
    "connector": "connector/target/lowtide-connector.jar",
    "connector/lib": "connector/target/lib/*.jar",
}


def check_clients(files: list[Path]) -> None:
    """Refuse two HBase clients: on one class path they answer for each other.

    Raises:
        SystemExit: names them, and what to do.
    """
    clients = [file for file in files if file.name.startswith("hbase-shaded-mapreduce-")]
    if len(clients) > 1:
        names = ", ".join(file.name for file in clients)
        raise SystemExit(
            f"{clients[0].parent} has {len(clients)} HBase clients ({names}), one of an earlier build: remove "
            "connector/target and .lowtide/setup/connector, then run make setup"
        )


class BuildWithFiles(build_py):
    """Copies ``SHIPPED``; an editable installation finds the checkout's own."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # A build before this one may have left files that are no longer there.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for folder, pattern in SHIPPED.items():
            files = sorted(ROOT.glob(pattern))
            if not files:
                raise SystemExit(
                    f"there is no {pattern} to put into the wheel; run make setup, which builds the connector"
                )
            check_clients(files)
            target = Path(self.build_lib) / "lowtide" / "shipped" / folder
            target.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy2(file, target)


# The metadata of a build lie below, not in, the checkout: in its root they would be those of a second installation to
# everything that has the checkout on its path, and Airflow would find the plugin twice (which drops other plugins from
# its workers).
METADATA = ROOT / ".lowtide" / "build"
METADATA.mkdir(parents=True, exist_ok=True)

setup(cmdclass={"build_py": BuildWithFiles}, options={"egg_info": {"egg_base": str(METADATA)}})
