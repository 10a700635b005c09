#!/usr/bin/env bash
# Reports on traces in a workflow: writes the step summary, a pull request comment and HTML, and ends with the gate.
#
# Everything comes through the environment: INPUT_* as action.yml names them, TRACEANALYZER_PYTHON, and the runner's own
# GITHUB_WORKSPACE, GITHUB_STEP_SUMMARY, GITHUB_OUTPUT, RUNNER_TEMP. File names are foreign: they may hold
# any byte. Exit status: 0 all well, 1 a gate failed, 2 bad input, 3 cannot judge where a gate was asked for.
set -euo pipefail
shopt -s nullglob
shopt -s globstar 2>/dev/null || true # bash 3.2 of macOS has none: there ** is *

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=action/workflow.sh
source "$here/workflow.sh"
export LC_COLLATE=C # the order of the traces is the same everywhere

summary_limit=1000000 # a step summary takes 1 MiB
comment_limit=65000   # a comment takes 65,536 characters; bytes are no fewer

cd "$GITHUB_WORKSPACE"
work=$(mktemp -d "$RUNNER_TEMP/traceanalyzer.XXXXXX")
python=$TRACEANALYZER_PYTHON
html=${INPUT_HTML:-}
verdict=ok comparison="" gate_failed=0
blocks=() traces=() claims=()

# worse WORD WORD: the graver of two verdicts.
worse() {
  local word
  for word in bad-input slower cannot-judge undecided suspect same ok faster; do
    [[ $1 != "$word" && $2 != "$word" ]] || { printf '%s' "$word" && return; }
  done
}

# lines TEXT: its lines without blanks around them and without empty ones.
lines() {
  printf '%s\n' "$1" | sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d'
}

# plain TEXT: the text on one line, of a length that people read.
plain() {
  local text=${1//[[:cntrl:]]/ }
  printf '%s' "${text:0:2000}"
}

# bad_input TITLE MESSAGE: an error that is shown on the page of the run, and in the summary and the comment.
bad_input() {
  annotate error "traceanalyzer: $1" "$2"
  local block=$work/block-${#blocks[@]}.md
  # an indented line is code, and one line holds nothing that ends it
  printf '### GPU trace report: BAD INPUT\n\n    %s\n' "$(plain "$1: $2")" >"$block"
  blocks+=("$block")
  verdict=bad-input
}

# analyse FILE COMMAND FORMAT OPTIONS...: makes the file; fails with `reason` set where nothing was made. The analyser's
# exit code is `code`.
analyse() {
  local output=$1 command=$2 format=$3
  shift 3
  code=0
  # -I: no file of the workspace gets to run in place of ours
  "$python" -I -m traceanalyzer "$command" --format "$format" -o "$output" "$@" >"$work/log" 2>&1 </dev/null || code=$?
  # 0 made, 1 made and a gate fails, 3 made and cannot judge; 5 is a fault of the analyser, never a gate that failed
  [[ $code == [013] && -s $output ]] && return
  reason=$(grep -v '^[[:space:]]*$' "$work/log" | tail -n 1 || true)
  reason=${reason#traceanalyze: }
  reason=${reason#Error: }
  [[ -n $reason ]] || reason="the analyser ended with exit code $code and said nothing"
  return 1
}

# judged JSON: reads `status` and `headline` of a report or comparison.
judged() {
  { IFS= read -r status && IFS= read -r headline; } < <("$python" -I "$here/verdict.py" "$1") || {
    status=cannot-judge headline="its verdict could not be read"
  }
  case $status in # a word of a later version is no pass
  ok | suspect | faster | same | undecided | slower | cannot-judge) ;;
  *) status=cannot-judge ;;
  esac
}

# tell NAME: annotates `headline` by `status` and `code`, and notes the failed gate.
tell() {
  local level=warning
  case $status in ok | same | faster) level=notice ;; esac
  if [[ $code == 1 ]]; then
    level=error gate_failed=1
  fi
  annotate "$level" "traceanalyzer: $1" "$headline"
}

# page NAME COMMAND OPTIONS...: makes one HTML page where pages are wanted. Without it the report is still whole.
page() {
  [[ -n $html ]] || return 0
  local name command=$2
  # an artifact takes no quotes, colons, line ends and the like in names
  name=$(printf '%s' "$1" | LC_ALL=C tr -c 'A-Za-z0-9._-' _ | cut -c 1-100)
  shift 2
  mkdir -p "$work/html"
  analyse "$work/html/$(printf '%02d' "$number")-$name.html" "$command" html "$@" ||
    annotate warning "traceanalyzer: no HTML for $name" "$reason"
}

report_on() { # TRACE
  local name block options
  name=$(shown "${1##*/}")
  options=(--no-progress ${claims[@]+"${claims[@]}"})
  if ! analyse "$work/report.json" report json "${options[@]}" ${INPUT_FAIL_ON:+--fail-on "$INPUT_FAIL_ON"} -- "$1"; then
    bad_input "$name" "$reason"
    return 0
  fi
  judged "$work/report.json"
  verdict=$(worse "$verdict" "$status")
  tell "$name"
  # a reviewer asks first whether it got faster
  [[ -z ${INPUT_BASE:-} ]] || compare_with_base "$1"
  block=$work/block-${#blocks[@]}.md
  if analyse "$block" report markdown --summary "${options[@]}" -- "$1"; then
    blocks+=("$block")
  else
    bad_input "$name" "$reason"
  fi
  page "${1##*/}" report "${options[@]}" -- "$1"
}

compare_with_base() { # TRACE
  local base=$INPUT_BASE name block=$work/block-${#blocks[@]}.md
  name=$(shown "${1##*/}")
  [[ ! -d $base ]] || base=${base%/}/${1##*/}
  if [[ ! -e $base ]]; then
    annotate notice "traceanalyzer: $name" "the base has no trace of this name: not compared"
    return 0
  fi
  [[ $base != -* ]] || base=./$base
  if ! analyse "$work/compare.json" compare json \
    ${INPUT_FAIL_ON_REGRESSION:+--fail-on-regression "$INPUT_FAIL_ON_REGRESSION"} -- "$base" "$1"; then
    bad_input "$name against its base" "$reason"
    comparison=bad-input
    return 0
  fi
  judged "$work/compare.json"
  comparison=$(worse "${comparison:-faster}" "$status")
  tell "$name against its base"
  if analyse "$block" compare markdown -- "$base" "$1"; then
    blocks+=("$block")
  else
    bad_input "$name against its base" "$reason"
  fi
  page "${1##*/}.compare" compare -- "$base" "$1"
}

# add_traces LINE: the file of that very name, or what the pattern finds.
add_traces() {
  local found=() path known
  local IFS=
  if [[ -e $1 && $1 != *[*?]* ]]; then
    found=("$1")
  else
    # a file may have the very name of a pattern: it is taken, and hides none of those that the pattern finds
    [[ ! -e $1 ]] || found=("$1")
    # shellcheck disable=SC2206 # a pattern is meant to be expanded; without IFS nothing is split
    found+=($1)
  fi
  local all=(${found[@]+"${found[@]}"})
  found=()
  for path in ${all[@]+"${all[@]}"}; do
    # ** finds folders as well, and whatever traces lie in them
    [[ -d $path && $path != "$1" ]] || found+=("$path")
  done
  if [[ ${#found[@]} == 0 ]]; then
    bad_input "$(shown "$1")" "no file matches; the workspace is searched, so download artifacts into it first"
    return 0
  fi
  for path in "${found[@]}"; do
    # a pattern for traces finds what a capture wrote beside them, too
    [[ $path != *.sidecar.json || $path == "$1" ]] || continue
    [[ $path != -* ]] || path=./$path
    for known in ${traces[@]+"${traces[@]}"}; do
      [[ $known != "$path" ]] || continue 2
    done
    traces+=("$path")
  done
}

# assemble LIMIT FILE: the blocks that fit, and how many do not.
assemble() {
  local size=200 left=0 block bytes
  # the bare marker is the same for every set of traces: a bot finds its comment by it
  printf '<!-- traceanalyzer:report -->\n' >"$2"
  for block in ${blocks[@]+"${blocks[@]}"}; do
    bytes=$(wc -c <"$block")
    if ((size + bytes + 1 > $1)); then
      left=$((left + 1))
      continue
    fi
    size=$((size + bytes + 1))
    { cat "$block" && printf '\n'; } >>"$2"
  done
  if ((left)); then
    printf 'Left out for want of room: %d more. Every verdict stands in the log.\n' "$left" >>"$2"
  fi
}

# finish: writes summary, comment and outputs, and ends with the status.
finish() {
  local status=0 exit_status comment=$work/comment.md target=${INPUT_COMMENT:-}
  if [[ $verdict == cannot-judge || $comparison == cannot-judge ]]; then status=3; fi
  if ((gate_failed)); then status=1; fi
  if [[ $verdict == bad-input || $comparison == bad-input ]]; then status=2; fi
  assemble "$summary_limit" "$work/summary.md"
  assemble "$comment_limit" "$comment"
  cat "$work/summary.md" >>"$GITHUB_STEP_SUMMARY"
  if [[ -n $target ]]; then
    # what is there and no file, a device or a pipe, would be replaced by the move
    if [[ -e $target && ! -f $target ]] || ! mkdir -p -- "$(dirname -- "$target")" || ! cp -- "$comment" "$target.part.$$" ||
      ! mv -f -- "$target.part.$$" "$target"; then # moved, so that a link of that name is not followed
      annotate error "traceanalyzer: comment not written" "$(shown "$target") is no file or cannot be written"
      status=2
    else
      comment=$target
    fi
  fi
  set_output verdict "$verdict"
  set_output comparison "$comparison"
  set_output status "$status"
  set_output summary-file "$work/summary.md"
  set_output comment-file "$comment"
  set_output html-dir "$([[ ! -d $work/html ]] || printf '%s' "$work/html")"
  exit_status=$status
  # without a gate the workflow is told, not stopped; bad input always stops it
  if [[ $status == 3 && -z ${INPUT_FAIL_ON:-}${INPUT_FAIL_ON_REGRESSION:-} ]]; then exit_status=0; fi
  exit "$exit_status"
}

case ${INPUT_FAIL_ON:-} in
"" | note | warning | error) ;;
*) bad_input fail-on "$(shown "$INPUT_FAIL_ON") is no level; give note, warning or error" ;;
esac
if [[ -n ${INPUT_FAIL_ON_REGRESSION:-} ]]; then
  if [[ ! $INPUT_FAIL_ON_REGRESSION =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    bad_input fail-on-regression "$(shown "$INPUT_FAIL_ON_REGRESSION") is no percentage; give e.g. 5"
  elif [[ -z ${INPUT_BASE:-} ]]; then
    bad_input fail-on-regression "there is nothing to compare with; give base, or leave fail-on-regression empty"
  fi
fi
if [[ -n ${INPUT_BASE:-} && ! -e $INPUT_BASE ]]; then
  bad_input base "$(shown "$INPUT_BASE") does not exist; leave base empty where there is none yet"
fi
# a wrong setting is wrong for every trace: it is said once
[[ $verdict != bad-input ]] || finish
while IFS= read -r line; do claims+=("--claim=$line"); done < <(lines "${INPUT_CLAIM:-}")
while IFS= read -r line; do add_traces "$line"; done < <(lines "${INPUT_TRACES:-}")
if [[ ${#traces[@]} == 0 && ${#blocks[@]} == 0 ]]; then
  bad_input traces "none given; give a path or a pattern in traces"
fi

number=0
for trace in ${traces[@]+"${traces[@]}"}; do
  number=$((number + 1))
  report_on "$trace"
done
finish
