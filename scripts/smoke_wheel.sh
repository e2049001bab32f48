#!/usr/bin/env bash
# Build the wheel, install it with its dependencies into a new environment, and audit from an empty folder, offline:
# smoke_wheel.sh PYTHON FOLDER, where PYTHON has `build` and `hatchling`, and FOLDER is made anew.
set -euo pipefail

python=$1
folder=$2
root=$(pwd)

rm -rf "$folder"
mkdir -p "$folder/empty"
folder=$(realpath "$folder")

"$python" -m build --wheel --no-isolation --outdir "$folder" "$root"
"$python" -m venv "$folder/venv"
installer=("$folder/venv/bin/python" -m pip install --disable-pip-version-check --quiet --constraint "$root/constraints.txt")
"${installer[@]}" torch
"${installer[@]}" "$folder"/specaudit-*.whl

offline=()
if unshare --user --map-root-user --net true 2>/dev/null; then
    offline=(unshare --user --map-root-user --net)
else
    echo "smoke-wheel: no network namespace here; HF_HUB_OFFLINE=1 alone keeps the run offline" >&2
fi

cd "$folder/empty"
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 SPECAUDIT_CACHE="$folder/cache"
"${offline[@]}" "$folder/venv/bin/specaudit" --version
"${offline[@]}" "$folder/venv/bin/specaudit" run --quiet --limit 8 --max-new-tokens 24 --out run

rm -rf "$folder/venv" # large, and made anew each time
echo "smoke-wheel: the wheel audits from an empty folder without network"
