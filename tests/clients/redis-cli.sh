#!/usr/bin/env bash
# redis-cli against a running server, the ways people use it without a terminal. Aimed by HOLDFAST_TEST_ADDR=host:port,
# which it empties. Knows nothing about which server answers; each check prints a line, the last line counts them.
set -uo pipefail

host=${HOLDFAST_TEST_ADDR%:*} port=${HOLDFAST_TEST_ADDR##*:}
passed=0 failed=0

cli() { timeout 60 redis-cli -h "$host" -p "$port" "$@" 2>&1; }

# same NAME OUTPUT EXPECTED
same() {
    if [[ $2 == "$3" ]]; then pass "$1"; else fail "$@"; fi
}

# like NAME OUTPUT GLOB
like() {
    # shellcheck disable=SC2053 # the right side is meant as a pattern
    if [[ $2 == $3 ]]; then pass "$1"; else fail "$@"; fi
}

pass() {
    passed=$((passed + 1))
    echo "ok: $1"
}

fail() {
    failed=$((failed + 1))
    printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$3" "$2"
}

plain_commands() {
    same 'a command' "$(cli SET greeting 'hello world')" OK
    same 'its value' "$(cli GET greeting)" 'hello world'
    same 'a missing key is an empty line' "$(cli GET absent)" ''
    same 'formatted nil' "$(cli --no-raw GET absent)" '(nil)'
    same 'formatted integer' "$(cli --no-raw INCR n)" '(integer) 1'
    same 'formatted string' "$(cli --no-raw GET greeting)" '"hello world"'
    same 'formatted array' "$(cli --no-raw MGET greeting absent)" $'1) "hello world"\n2) (nil)'
    like 'an error' "$(cli INCR greeting)" 'ERR value is not an integer or out of range*'
    like 'a formatted error' "$(cli --no-raw HGET greeting f)" '(error) WRONGTYPE Operation against a key*'
    cli -e INCR greeting >/dev/null
    same 'an error gives -e its exit code' $? 1
    like 'an unknown command' "$(cli NOSUCH a b)" "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'*"
    same 'another database' "$(cli -n 5 SET k five) $(cli -n 5 GET k) $(cli EXISTS k)" 'OK five 0'
    same 'repeated' "$(cli -r 3 INCR repeated)" $'1\n2\n3'
    same 'by URI' "$(timeout 60 redis-cli -u "redis://$host:$port/5" GET k)" five
    same 'several commands from stdin' "$(printf 'SET a 1\nINCR a\nGET a\n' | cli)" $'OK\n2\n2'
    same 'quoting on stdin' "$(printf 'SET "a b" "x\\ty"\nSTRLEN "a b"\n' | cli)" $'OK\n3'
}

output_forms() {
    cli HSET form name apple count 3 >/dev/null
    same 'RESP2 hash' "$(cli -2 --no-raw HGETALL form)" $'1) "name"\n2) "apple"\n3) "count"\n4) "3"'
    same 'RESP3 hash' "$(cli -3 --no-raw HGETALL form)" $'1# "name" => "apple"\n2# "count" => "3"'
    same 'RESP3 nil' "$(cli -3 --no-raw GET absent)" '(nil)'
    like 'RESP3 hello' "$(cli -3 HELLO)" '*proto 3*role master*'
    same 'JSON hash' "$(cli --json HGETALL form)" '{"name":"apple","count":"3"}'
    same 'JSON array' "$(cli --json MGET greeting absent n)" '["hello world",null,"1"]'
    same 'JSON of RESP2' "$(cli -2 --json HGETALL form)" '["name","apple","count","3"]'
    same 'JSON of a configuration' "$(cli --json CONFIG GET maxmemory-policy)" '{"maxmemory-policy":"noeviction"}'
    same 'CSV hash' "$(cli --csv HGETALL form)" '"name","apple","count","3"'
    same 'CSV with nil' "$(cli --csv MGET greeting absent)" '"hello world",NULL'
    same 'binary on the way in and out' "$(cli --no-raw --quoted-input ECHO '"\x00\xff\r\n"')" '"\x00\xff\r\n"'
}

standard_input() {
    printf 'from a\nfile' | cli -x SET stdin >/dev/null
    same '-x takes the last argument from stdin' "$(cli GET stdin)" $'from a\nfile'
    printf 'tagged' | cli -X tag SET tag value >/dev/null
    same '-X takes a tagged argument from stdin' "$(cli GET tagged)" value
    head -c 5000000 /dev/zero | tr '\0' x | cli -x SET big >/dev/null
    same 'five megabytes by -x' "$(cli STRLEN big)" 5000000
}

# Mass insertion: 20000 SETs and 20000 HSETs as raw RESP, and one that fails.
mass_insertion() {
    resp() {
        awk 'function bulk(s) { return "$" length(s) "\r\n" s "\r\n" }
            BEGIN { for (i = 0; i < 20000; i++) {
                printf "*3\r\n%s%s%s", bulk("SET"), bulk("mass:" i), bulk("value " i)
                printf "*4\r\n%s%s%s%s", bulk("HSET"), bulk("mass-hash:" i % 10), bulk("f" i), bulk(i)
            } }'
    }
    cli FLUSHALL >/dev/null
    like '--pipe' "$(resp | cli --pipe)" '*errors: 0, replies: 40000'
    same '--pipe stored every key' "$(cli DBSIZE)" 20010
    same '--pipe stored every field' "$(cli HLEN mass-hash:3)" 2000
    like '--pipe counts errors' "$(printf 'SET a 1\r\nINCRBY a x\r\nINCR a\r\n' | cli --pipe)" '*errors: 1, replies: 3'
    cli DEL a >/dev/null
}

whole_keyspace() {
    same '--scan' "$(cli --scan | sort -u | wc -l)" 20010
    like '--scan --pattern' "$(cli --scan --pattern 'mass:1999?' | sort | tr '\n' ' ')" 'mass:19990 mass:19991 *mass:19999 '
    like '--bigkeys' "$(cli --bigkeys)" '*Sampled 20010 keys*Biggest   hash found*has 2000 fields*20000 strings with*'
    like '--memkeys' "$(cli --memkeys)" '*Sampled 20010 keys*Biggest   hash found*bytes*'
    like '--hotkeys needs an LFU policy' "$(cli --hotkeys)" '*An LFU maxmemory policy is not selected*'
}

# Keys begin with a counter of 5 under an LFU policy; one is read until its counter is higher than any other.
hot_keys() {
    cli FLUSHALL >/dev/null
    cli CONFIG SET maxmemory-policy allkeys-lfu >/dev/null
    # shellcheck disable=SC2064 # the address of now
    trap "redis-cli -h $host -p $port CONFIG SET maxmemory-policy noeviction >/dev/null" EXIT
    for number in {1..50}; do echo "SET cold:$number v"; done | cli >/dev/null
    { echo 'SET hot v' && for _ in {1..500}; do echo 'GET hot'; done; } | cli >/dev/null
    like '--hotkeys names the hot key first' "$(cli --hotkeys | grep -m1 '^hot key found')" 'hot key found with counter: *keyname: "hot"'
    like 'OBJECT FREQ' "$(cli OBJECT FREQ hot) $(cli OBJECT FREQ cold:7)" '@([6-9]|[1-9][0-9]) 5'
    cli CONFIG SET maxmemory-policy noeviction >/dev/null
    trap - EXIT
}

watching() {
    # redis-cli --stat has no end of its own and buffers into a pipe; the time limit ends it.
    local stat
    stat=$(timeout 3 stdbuf -oL redis-cli -h "$host" -p "$port" --stat -i 0.2 2>&1)
    like '--stat' "$stat" '*keys*mem*clients*20010*'
    like '--latency' "$(cli --latency --raw -i 1)" '[0-9]* [0-9]* [0-9.]* [0-9]*'

    # Waits for a word in MONITOR's output, as long as MONITOR lives.
    await() { until grep -q "$1" "$seen" || ! kill -0 "$monitor"; do sleep 0.05; done; }
    local seen
    seen=$(mktemp)
    timeout 30 redis-cli -h "$host" -p "$port" MONITOR >"$seen" &
    local monitor=$!
    await OK
    cli SET 'watched key' $'v"\n' >/dev/null
    await watched
    kill "$monitor"
    wait "$monitor" 2>/dev/null
    like 'MONITOR' "$(grep watched "$seen")" '[0-9]*.[0-9]* [[]0 *:*[]] "SET" "watched key" "v\\"\\n"'
    rm -f "$seen"
}

# Bare sockets: inline commands, pipelined requests in one write, and QUIT.
# shellcheck disable=SC2016 # $4 is RESP, not a variable
bare_socket() {
    talk() { { printf '%b' "$1" >&3 && timeout 10 cat <&3; } 3<>"/dev/tcp/$host/$port" | tr -d '\r'; }
    same 'inline PING' "$(talk 'PING\r\nQUIT\r\n')" $'+PONG\n+OK'
    same 'inline with a bare newline' "$(talk 'PING\nQUIT\n')" $'+PONG\n+OK'
    same 'inline with quotes' "$(talk 'SET inline "a \\x41 b"\r\nGET inline\r\nQUIT\r\n')" $'+OK\n$5\na A b\n+OK'
    same 'empty lines are passed over' "$(talk '\r\n\r\nPING\r\nQUIT\r\n')" $'+PONG\n+OK'
    same 'unbalanced quotes' "$(talk 'SET k "v\r\n')" '-ERR Protocol error: unbalanced quotes in request'
    same 'arrays and inline mixed' "$(talk '*1\r\n$4\r\nPING\r\nECHO hi\r\nQUIT\r\n')" $'+PONG\n$2\nhi\n+OK'
    same 'a bad length' "$(talk '*1\r\n$x\r\n')" '-ERR Protocol error: invalid bulk length'
}

passwords() {
    like 'a password where none is set' "$(cli -a secret PING)" '*AUTH failed: ERR AUTH <password> called without any password configured*PONG'
    trap 'cli -a secret CONFIG SET requirepass "" >/dev/null' EXIT
    cli CONFIG SET requirepass secret >/dev/null
    like 'no password' "$(cli PING)" 'NOAUTH Authentication required.*'
    like 'a wrong password' "$(cli --no-auth-warning -a wrong PING)" 'AUTH failed: WRONGPASS*NOAUTH Authentication required.*'
    same 'a password' "$(cli --no-auth-warning -a secret PING)" PONG
    same 'a password over RESP3' "$(cli -3 --no-auth-warning -a secret PING)" PONG
    same 'a user and a password' "$(cli --no-auth-warning --user default --pass secret PING)" PONG
    same 'a password by environment' "$(REDISCLI_AUTH=secret cli PING)" PONG
    same 'a password by URI' "$(timeout 60 redis-cli --no-auth-warning -u "redis://default:secret@$host:$port" PING)" PONG
    cli --no-auth-warning -a secret CONFIG SET requirepass '' >/dev/null
    trap - EXIT
    same 'the password taken back' "$(cli PING)" PONG
}

about_the_server() {
    like 'INFO' "$(cli INFO server)" '*# Server*redis_version:*'
    like 'HELP of a container' "$(cli OBJECT HELP)" '*ENCODING <key>*'
    like 'COMMAND COUNT' "$(cli COMMAND COUNT)" '[0-9]*'
    like 'COMMAND DOCS' "$(cli --json COMMAND DOCS get)" '{"get":{"summary":*"group":"string"*'
    like 'DEBUG or its refusal' "$(cli DEBUG SLEEP 0)" '@(OK|ERR DEBUG command not allowed*)'
}

shopt -s extglob
cli FLUSHALL >/dev/null
plain_commands
output_forms
standard_input
mass_insertion
whole_keyspace
watching
hot_keys
bare_socket
passwords
about_the_server
cli FLUSHALL >/dev/null
echo "redis-cli: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 && $passed -gt 0 ]]
