# shellcheck shell=bash
# How a script speaks to the runner: outputs and annotations that no file name and no message can forge. Sourced.

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

# shown PATH: the path as a shell would take it, in plain ASCII on one line.
shown() {
  local LC_ALL=C
  printf '%q' "$1"
}
