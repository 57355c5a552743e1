#!/usr/bin/env bash
# Builds the package's wheel and sdist, installs each into an empty virtual environment, and runs the README's first example there:
# check_artefacts.sh. PYTHON is one that has the module build (python3 if it is not given), HOLDFAST_BIN the server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib.sh
source ../../scripts/lib.sh

work=$(mktemp -d)
trap 'stop_server; rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }

passed=0 failed=0
for artefact in "$work"/dist/*.{whl,tar.gz}; do
    echo "${artefact##*/}"
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$artefact"
    start_server "$work/server" "$HOLDFAST_BIN"
    # In another folder and without the sources, so that the package is the installed one.
    if (cd "$work" && env -u PYTHONPATH "$work/venv/bin/python" "$OLDPWD/tests/run_document.py" "$OLDPWD/README.md" "${server_addr##*:}" 1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    stop_server
done
echo "check-artefacts: $passed passed, $failed failed"
[[ $passed == 2 && $failed == 0 ]]
