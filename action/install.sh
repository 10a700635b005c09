#!/usr/bin/env bash
# Installs the analyser of this very checkout into an environment of its own: the workflow's Python is not changed.
#
# Reads GITHUB_ACTION_PATH, RUNNER_TEMP, GITHUB_OUTPUT and TRACEANALYZER_BASE_PYTHON (empty: python3 of the PATH).
# Output: python, the interpreter that has the analyser.
set -euo pipefail

# set_output NAME VALUE: the value ends at a word drawn after it was made, so that nothing in it can end it.
set_output() {
  local end
  end="end_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"$GITHUB_OUTPUT"
}

# annotate LEVEL TITLE MESSAGE: one workflow command, on one line whatever the texts. The runner reads a command only at
# the beginning of a line (`::`), or anywhere in a line that holds none (`##[`): so foreign text is printed here alone.
annotate() {
  local title=$2 message=$3
  title=$(one_line "$title")
  title=${title//:/%3A}
  printf '::%s title=%s::%s\n' "$1" "${title//,/%2C}" "$(one_line "$message")"
}

# one_line TEXT: the text with what would end a command escaped as the runner reads it back.
one_line() {
  local text=$1
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '%s' "${text//$'\n'/%0A}"
}

refuse() {
  annotate error "traceanalyzer: not installed" "$1"
  exit 2
}

python=${TRACEANALYZER_BASE_PYTHON:-}
[[ -n $python ]] || python=$(command -v python3 || command -v python) ||
  refuse "no python3 on the PATH; set the input python-version, e.g. '3.12'"
# -I: neither PYTHONPATH nor a file of the workspace gets to run in place of ours
version=$("$python" -I -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 10))') ||
  refuse "Python 3.10 or newer is needed, found ${version:-none}; set the input python-version, e.g. '3.12'"

place=$RUNNER_TEMP/traceanalyzer-venv
"$python" -I -m venv "$place" >"$RUNNER_TEMP/traceanalyzer-install.log" 2>&1 ||
  refuse "Python $version cannot make a virtual environment (on Debian: apt-get install python3-venv)"
own=$place/bin/python
[[ -x $own ]] || own=$place/Scripts/python.exe
"$own" -I -m pip install --quiet --no-compile --disable-pip-version-check \
  -c "$GITHUB_ACTION_PATH/constraints.txt" "$GITHUB_ACTION_PATH" >>"$RUNNER_TEMP/traceanalyzer-install.log" 2>&1 ||
  refuse "pip failed: $(tail -n 3 "$RUNNER_TEMP/traceanalyzer-install.log")"
set_output python "$own"
