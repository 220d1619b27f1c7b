"""The images are built from pinned parts, with what they need and nothing else."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.fixtures_paths import PROJECT


def test_the_image_is_built_from_pinned_parts_and_ends_as_an_ordinary_user() -> None:
    lines = (PROJECT / "deploy/Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert set(bases) == {bases[0], "service"}
    assert bases[-1] == "service", "what is built without a target"
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", bases[0])
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 10001:10001"
    installs = [line for line in lines if "pip install" in line]
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)


@pytest.mark.parametrize("name", ["deploy/Dockerfile", "deploy/spark/Dockerfile"])
def test_an_image_is_built_with_what_it_needs_and_no_syntax_from_a_registry(name: str) -> None:
    text = (PROJECT / name).read_text()
    assert "syntax=" not in text
    assert "dev.txt" not in text


def test_what_builds_the_wheel_is_the_version_that_is_tested() -> None:
    text = (PROJECT / "requirements/build.txt").read_text()
    locked = (PROJECT / "requirements/dev.txt").read_text()
    pins = re.findall(r"^\S+==\S+", text, re.M)
    assert any(pin.startswith("hatchling==") for pin in pins)
    assert [line for line in text.splitlines() if line not in locked.splitlines()] == []


def test_the_image_has_every_package_of_the_wheel() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    lines = (PROJECT / "deploy/Dockerfile").read_text().splitlines()
    assert {f"COPY {package} {package}" for package in wheel} <= set(lines)
