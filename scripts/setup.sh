# shellcheck shell=sh
# Shared by demo, test and prove: makes .venv with what pyproject.toml asks for. Sourced, from the root of the repository.

venv_python=.venv/bin/python
unfinished=.venv/.setup-unfinished

say() { printf '%s\n' "$*"; }

now() { date +%s; }

# step WORDS COMMAND...: runs quietly, with a dot every five seconds and its output only when it fails.
step() {
    printf '%s ' "$1"
    shift
    step_began=$(now)
    step_log=$scratch/step
    dots & ticker=$!
    step_status=0
    "$@" >"$step_log" 2>&1 </dev/null || step_status=$?
    stop_dots
    if [ "$step_status" -eq 0 ]; then
        say "done in $(($(now) - step_began)) s"
    else
        say "failed"
        without_addresses <"$step_log" | tail -n 30 >&2
    fi
    return "$step_status"
}

dots() {
    beat=0
    while sleep 1 >/dev/null 2>&1; do
        beat=$((beat + 1))
        [ $((beat % 5)) -ne 0 ] || printf .
    done
}

stop_dots() {
    [ -z "${ticker:-}" ] || kill "$ticker" 2>/dev/null || true
    [ -z "${ticker:-}" ] || wait "$ticker" 2>/dev/null || true
    ticker=
}

without_addresses() { sed 's|[a-z]*://[^ ]*|(address)|g'; }

scratch=$(mktemp -d)
trap 'stop_dots; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# supervise SCRIPT ARGUMENT...: starts the script again below a process that ends, with it, all that it has started.
# Does nothing the second time, or while there is no Python yet.
supervise() {
    supervisor=$venv_python
    made_here || supervisor=$(newest_python)
    if [ -z "${SUPERVISED:-}" ] && [ -n "$supervisor" ]; then
        rm -rf "$scratch"
        SUPERVISED=yes exec "$supervisor" scripts/supervise.py sh "$@"
    fi
}

# setup EXTRA: an environment with the extra "test" or "prove" of pyproject.toml, or "run" for none; quick when it is there.
setup() {
    setup_mark=$(setup_hash "$1")
    # Everything that the demo needs is in the larger environments too.
    for setup_kind in "$1" test prove; do
        case "$1:$setup_kind" in test:prove | prove:test) continue ;; esac
        [ -e "$unfinished" ] || [ "$(cat ".venv/.setup-$setup_kind" 2>/dev/null)" != "$(setup_hash "$setup_kind")" ] || return 0
    done
    find_python
    made_here || rm -rf .venv
    mkdir -p .venv
    : >"$unfinished"
    [ -x "$venv_python" ] || make_venv
    # What cannot be fetched changes nothing in .venv; what is interrupted may.
    step "Installing what rushes needs (about 320 MB)" install_packages "$1" || { rm "$unfinished"; exit 1; }
    pwd -P >.venv/.setup-place
    say "$setup_mark" >".venv/.setup-$1"
    rm "$unfinished"
}

setup_hash() { { pwd; say "$1"; cat pyproject.toml constraints.txt scripts/setup.sh; } | cksum; }

# Whether .venv can be used. Its scripts name the folder it was made in, so a moved one is made again, as is one whose
# set-up was interrupted.
made_here() {
    "$venv_python" -c '' 2>/dev/null && [ ! -e "$unfinished" ] && [ "$(cat .venv/.setup-place 2>/dev/null || pwd -P)" = "$(pwd -P)" ]
}

find_python() {
    python=$(newest_python)
    if [ -z "$python" ] && ! has uv; then
        apt_install python3 python3-venv
        python=$(newest_python)
        [ -n "$python" ] || give_up "Python 3.11 or later (this system has only older ones)"
    elif ! can_install "$python"; then
        apt_install python3-venv
        can_install "$python" || give_up "pip or uv for $python"
    fi
}

newest_python() {
    for candidate in python3.13 python3.12 python3.11 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian splits ensurepip from Python; a pip of the system can install into a bare environment as well.
can_install() { has uv || "$1" -c 'import ensurepip' 2>/dev/null || "$1" -m pip --version >/dev/null 2>&1; }

make_venv() {
    if has uv; then
        step "Making .venv (uv)" uv venv --quiet --allow-existing --python "${python:->=3.11}" .venv || exit 1
    elif "$python" -c 'import ensurepip' 2>/dev/null; then
        step "Making .venv ($("$python" --version))" "$python" -m venv .venv || exit 1
    else
        step "Making .venv ($("$python" --version))" "$python" -m venv --without-pip .venv || exit 1
    fi
}

# First what others made, each file by its hash; then rushes itself, which needs nothing more.
install_packages() {
    sed "/^# end of $1\$/q" constraints.txt >"$scratch/pins" \
        && pip_install --require-hashes -r "$scratch/pins" \
        && pip_install --no-deps --no-build-isolation -e .
}

pip_install() {
    if has uv; then
        uv pip install --python "$venv_python" "$@"
    else
        pip=$venv_python
        "$pip" -c 'import pip' 2>/dev/null || pip=$python
        "$pip" -m pip --python "$venv_python" install --quiet --disable-pip-version-check --no-input "$@"
    fi
}

# apt_install PACKAGE...: as root on Debian; otherwise one line for each that would have to be there.
apt_install() {
    if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
        for package in "$@"; do
            say "missing: $package (ask an administrator for: apt-get install $package)" >&2
        done
        exit 1
    fi
    step "Installing $* by apt" apt_quietly "$@" || exit 1
}

apt_quietly() {
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

give_up() {
    say "missing: $1" >&2
    exit 1
}

# Settings of the caller would change what the scripts show; the folder of weights may be shared. Without compiled files
# every process of a test compiles what it imports.
forget_settings() {
    for name in $(env | sed -n 's/^\(RUSHES_[A-Z_]*\)=.*/\1/p'); do
        [ "$name" = RUSHES_MODELS ] || unset "$name"
    done
    unset LOG_LEVEL ARQ_JOB_TIMEOUT DATABASE_URL REDIS_URL S3_BUCKET S3_ENDPOINT S3_ACCESS_KEY_ID S3_SECRET_ACCESS_KEY
    unset AWS_ENDPOINT_URL MODEL_CACHE_DIR PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
}
