"""What docker-compose.yaml and the files beside it keep to. (tests/compose brings it up.)"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lowtide.config import load

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yaml"
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
#: They do one thing and end; others wait until it is done.
ONE_SHOT = {"workload", "airflow-init"}


def wanted(service: str) -> dict[str, str]:
    """What a service waits for, and in which state."""
    return {name: how["condition"] for name, how in SERVICES[service].get("depends_on", {}).items()}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_watched_or_ends(service: str) -> None:
    """Every server has a health check; a one-shot has none, and is not started again."""
    definition = SERVICES[service]
    assert ("healthcheck" in definition) != (service in ONE_SHOT)
    assert definition["restart"] == ("no" if service in ONE_SHOT else "on-failure")


@pytest.mark.parametrize("service", SERVICES)
def test_services_wait_for_what_is_well(service: str) -> None:
    """Servers must be healthy, one-shots done, before what needs them begins."""
    for name, condition in wanted(service).items():
        assert condition == ("service_completed_successfully" if name in ONE_SHOT else "service_healthy")


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_open_on_the_loopback_interface_only(service: str) -> None:
    """Nobody else's machine reaches anything."""
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))


@pytest.mark.parametrize("service", SERVICES)
def test_images_are_built_from_the_checkout(service: str) -> None:
    """By one Dockerfile, from a stage of the image's name."""
    definition = SERVICES[service]
    build = definition["build"]
    assert (build["context"], build["dockerfile"]) == (".", "docker/Dockerfile")
    assert definition["image"].removeprefix("lowtide-") == build["target"]
    assert re.search(rf"^FROM \S+ AS {build['target']}$", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize("service", SERVICES)
def test_volumes_that_are_named_are_declared(service: str) -> None:
    """And nothing but Lowtide's configuration comes from the host."""
    for volume in SERVICES[service].get("volumes", []):
        source = volume.partition(":")[0]
        assert source in COMPOSE["volumes"] or volume == "./docker/lowtide.yaml:/opt/lowtide/lowtide.yaml:ro"


def test_every_image_is_debian() -> None:
    """Stages are made from debian:bookworm-slim or from one another."""
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)
    names = {name for _, name in stages}
    assert {base for base, _ in stages} - names == {"debian:bookworm-slim"}


def test_secrets_come_from_the_env_file() -> None:
    """A variable that is missing is an error, the env file's example names them all and holds none."""
    needed = set(re.findall(r"\$\{(\w+):\?[^}]+\}", FILE.read_text("utf-8")))
    example = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / ".env.example").read_text("utf-8"), re.MULTILINE))
    assert needed == {name for name, value in example.items() if not value}
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]+)\}", FILE.read_text("utf-8")))
    assert defaults == {name: value for name, value in example.items() if value}
    secret = re.compile(r"PASSWORD|SECRET|_KEY$")
    for definition in SERVICES.values():
        for name, value in definition.get("environment", {}).items():
            if secret.search(name) and not name.endswith("_FILE"):
                assert str(value).startswith("${"), name


def test_the_env_file_is_made_with_secrets_of_its_own(tmp_path: Path) -> None:
    """Readable for its owner alone, another one each time, and never over one that is there."""
    script = runpy.run_path(str(ROOT / "tools/make-env"))
    made = []
    for name in ("a", "b"):
        home = tmp_path / name
        home.mkdir()
        (home / ".env.example").write_text("# text\nSECRET=\nPORT=1\n", "utf-8")
        script["write"](home)
        file = home / ".env"
        assert file.stat().st_mode & 0o777 == 0o600
        made.append(file.read_text("utf-8"))
        script["write"](home)
        assert file.read_text("utf-8") == made[-1]
    assert made[0] != made[1]
    assert all(re.fullmatch(r"# text\nSECRET=[\w-]{43}=\nPORT=1\n", text) for text in made)


def test_the_configuration_names_the_services() -> None:
    """Lowtide's configuration in the containers is valid, and the hosts in it are services."""
    config = load(ROOT / "docker/lowtide.yaml")
    config.state.check_sideline(config.spark.master)
    addresses = [
        config.spark.master,
        config.state.sideline,
        config.hbase.properties["hbase.rootdir"],
        *config.omid.oracle,
    ]
    hosts = {re.sub(r"^\w+://", "", address).partition(":")[0] for address in addresses}
    hosts |= {config.hbase.zookeeper_quorum, config.hbase.thrift.host}
    assert hosts <= {definition.get("hostname") for definition in SERVICES.values()}


def test_no_version_stands_in_two_places() -> None:
    """The Dockerfile has none; what its requirements pin is not in the lock."""
    assert not re.search(r"\d+\.\d+\.\d+", DOCKERFILE)
    locked = set(re.findall(r"^([\w-]+)==", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    asked = re.findall(r"^([\w-]+)(==.+)?$", (ROOT / "docker/requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert all((name in locked) != bool(pin) for name, pin in asked)


def test_what_is_copied_into_an_image_can_be_read_there() -> None:
    """Whatever umask its checkout was made with: containers run as users without rights. Nothing of the stage that
    builds runs.
    """
    for stage in re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]:
        if stage.startswith("FROM debian:bookworm-slim AS build"):
            continue
        copied = re.findall(r"^COPY (?!--from)(.+)$", stage, re.MULTILINE)
        opened = " ".join(re.findall(r"^RUN chmod -R a\+rX (.+)$", stage, re.MULTILINE)).split()
        assert stage.find("USER") == -1 or not copied or stage.find("chmod -R") < stage.rfind("USER")
        for line in copied:
            *_, target = line.split()
            files = line.split()[:-1] if target == "./" else [target]
            assert all(any(Path(file).is_relative_to(top) for top in opened) for file in map(_place, files)), line


def _place(file: str) -> str:
    """Where a file of the checkout comes to lie, from the image's working folder."""
    return Path(file).name if file.startswith("docker/requirements") else file
