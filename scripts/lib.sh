# shellcheck shell=bash
# What scripts/test is built of: missing packages, a server on a free port, and the counts in a test runner's output.
# Knows nothing about which tests there are.

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

# start_server DIR COMMAND…: runs `COMMAND --port N --bind 127.0.0.1 --dir DIR/data` and waits until it answers PING.
# Sets server_addr and server_log.
start_server() {
    local dir=$1 port
    shift
    port=$(free_port)
    # shellcheck disable=SC2034 # for the caller
    server_addr=127.0.0.1:$port
    server_log=$dir/server.log
    rm -rf "$dir/data"
    mkdir -p "$dir/data"
    "$@" --port "$port" --bind 127.0.0.1 --dir "$dir/data" </dev/null >"$server_log" 2>&1 &
    server_pid=$!
    for _ in {1..200}; do
        if answers_ping "$port"; then return 0; fi
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "The server did not come up: $*"
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

# Adds up what cargo test, pytest, node --test and our own scripts say of their tests: prints `passed failed skipped`.
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
        /^ℹ (pass|fail|cancelled|skipped) [0-9]+$/ { tally($3, $2) }
        END { print passed + 0, failed + 0, skipped + 0 }
    ' "$@"
}
