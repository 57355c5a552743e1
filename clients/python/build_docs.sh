#!/usr/bin/env bash
# Writes the documentation of all names of the package as HTML, and fails if there is a warning: build_docs.sh FOLDER. PYTHON is one that has
# the modules pdoc and redis (python3 if it is not given).
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" -W error -m pdoc --output-directory "$folder" holdfast holdfast.asyncio
