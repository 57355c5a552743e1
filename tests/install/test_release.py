"""What scripts/release writes into the packages: versions, the changelog's section, the repository's address, links."""
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
URL = "https://git.example/holdfast"


@pytest.fixture
def tree(tmp_path):
    """A copy of what the script reads and writes."""
    for place in ["Cargo.toml", "CHANGELOG.md", "README.md", "LICENSE", "crates/client", "crates/server/Cargo.toml", "clients/python",
                  "clients/typescript/package.json", "clients/typescript/package-lock.json", "clients/typescript/README.md", "docs"]:
        source, target = REPOSITORY / place, tmp_path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path


def run(tree, *words):
    return subprocess.run([REPOSITORY / "scripts/release-metadata", *words], cwd=tree, capture_output=True, text=True)


def version(tree):
    return tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def replace(file, old, new):
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


def set_address(tree, url):
    text, count = re.subn(r'^repository = ".*"$', f'repository = "{url}"', (tree / "Cargo.toml").read_text(), flags=re.MULTILINE)
    assert count == 1
    (tree / "Cargo.toml").write_text(text)


def test_the_versions_of_all_packages_agree(tree):
    assert (done := run(tree, "check", version(tree))).returncode == 0, done.stderr
    other = run(tree, "check", "77.0.0")
    assert other.returncode != 0
    for place in ["Cargo.toml", "pyproject.toml", "package.json", "package-lock.json", "CHANGELOG.md"]:
        assert place in other.stderr
    replace(tree / "clients/typescript/package.json", f'"version": "{version(tree)}"', '"version": "77.0.0"')
    one = run(tree, "check", version(tree))
    assert one.returncode != 0 and one.stderr.count("\n") == 1 and "package.json has version 77.0.0" in one.stderr


def test_the_notes_are_one_section_of_the_changelog(tree):
    set_address(tree, "")
    notes = run(tree, "notes", version(tree)).stdout
    assert notes.startswith(f"## [{version(tree)}] - ") and notes.count("\n## ") == 0
    assert len(notes) > 500 and notes in (tree / "CHANGELOG.md").read_text()
    assert run(tree, "notes", "77.0.0").stdout == ""
    set_address(tree, URL)
    linked = run(tree, "notes", version(tree)).stdout
    assert linked == re.sub(r"\]\((?!http)", f"]({URL}/blob/v{version(tree)}/", notes) != notes


def test_the_address_is_written_into_every_package(tree):
    set_address(tree, URL + "/")
    assert run(tree, "address").stdout == URL + "\n"
    assert (done := run(tree, "substitute", version(tree))).returncode == 0, done.stderr
    assert tomllib.loads((tree / "crates/client/Cargo.toml").read_text())["package"]["repository"] == URL
    assert tomllib.loads((tree / "crates/server/Cargo.toml").read_text())["package"]["homepage"] == URL
    assert tomllib.loads((tree / "clients/python/pyproject.toml").read_text())["project"]["urls"]["Repository"] == URL
    assert json.loads((tree / "clients/typescript/package.json").read_text())["repository"]["url"] == f"git+{URL}.git"
    for readme in ["crates/client/README.md", "clients/python/README.md", "clients/typescript/README.md"]:
        links = re.findall(r"\]\(([^)\s]+)\)", (tree / readme).read_text())
        assert [link for link in links if "://" not in link and not link.startswith("#")] == [], readme
    assert f"]({URL}/blob/v{version(tree)}/docs/packages.md)" in (tree / "clients/python/README.md").read_text()


def test_without_an_address_the_packages_have_none(tree):
    set_address(tree, "")
    before = (tree / "clients/python/pyproject.toml").read_text()
    done = run(tree, "substitute", version(tree))
    assert done.returncode == 0 and "no address" in done.stderr
    assert (tree / "clients/python/pyproject.toml").read_text() == before and "[project.urls]" not in before


def test_links_out_of_the_package_become_addresses_or_text(tree):
    set_address(tree, "")
    (tree / "docs/page.md").write_text("[a](../CONTRIBUTING.md#x) [b](jobs.md#y) [c](../config/holdfast.toml)\n```sh\n[d](../CONTRIBUTING.md)\n```\n")
    assert run(tree, "documents", "doc").returncode == 0
    kept = "[b](jobs.md#y) [c](/etc/holdfast/holdfast.toml)\n```sh\n[d](../CONTRIBUTING.md)\n```\n"
    assert (tree / "doc/docs/page.md").read_text() == "a " + kept
    set_address(tree, URL)
    assert run(tree, "documents", "doc").returncode == 0
    assert (tree / "doc/docs/page.md").read_text() == f"[a]({URL}/blob/v{version(tree)}/CONTRIBUTING.md#x) " + kept
