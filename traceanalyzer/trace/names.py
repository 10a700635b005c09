"""Names for people: kernel names shortened so that what tells them apart stays, paths taken out."""

from __future__ import annotations

import re

SHORT_WIDTH = 44

_POSIX_PATH = re.compile(r"(?<![\w.)\]])/(?:[\w.@+~ -]+/)+([\w.@+~-]*)")
_HOME_PATH = re.compile(r"(?<!\w)~/(?:[\w.@+-]+/)*([\w.@+-]*)")
_WINDOWS_PATH = re.compile(r"(?<!\w)[A-Za-z]:[\\/](?:[^\\/:*?\"<>|\r\n]+[\\/])*([^\\/:*?\"<>|\r\n]*)")
_LEADING = re.compile(r"^(?:void|bool|float|int|auto)\s+")
_NOISE = re.compile(r"\(anonymous namespace\)::|\{anonymous\}::|<unnamed>::")
_NAMESPACES = re.compile(r"\b(?:at::native|at|c10|std|thrust::detail|cub|cutlass|cudnn|pytorch_flash)::(?=\w)")
_WORD = re.compile(r"[A-Za-z0-9]+")
_FILL = re.compile(r"FillFunctor|\bfill_?(?:kernel)?\b|memset|\bzero_?(?:kernel)?\b", re.I)
_LAMBDA = re.compile(r"\{lambda\([^{}]*\)#(\d+)\}(?:::operator\(\)\([^{}()]*\)(?: const)?)?")


def scrub_paths(text: str) -> str:
    """Return the text with the folders of file paths gone: they name machines and users."""
    if "/" in text:
        text = _HOME_PATH.sub(r"\1", _POSIX_PATH.sub(r"\1", text))
    if "\\" in text or ":/" in text:
        text = _WINDOWS_PATH.sub(r"\1", text)
    return text


def simplify(name: str) -> str:
    """Return a kernel name without return type, parameter list, well-known namespaces and lambda noise.

    Template arguments stay; :func:`short_names` folds them as far as the width asks.
    """
    name = name[:8192].strip()
    if name.lower().startswith(("memcpy", "memset")):
        return name  # "(Pinned -> Device)" is what matters in it, not a parameter list
    if name.startswith(("std::enable_if<", "void std::enable_if<")) and (end := name.find("::type ")) >= 0:
        name = name[end + len("::type ") :]
    name = _LEADING.sub("", name)
    name = _NOISE.sub("", name)
    name = _LAMBDA.sub(r"λ\1", name)
    name = _drop_parameters(name)
    return _NAMESPACES.sub("", name).strip()


def _drop_parameters(name: str) -> str:
    """Drop a trailing ``(...)`` that closes the name; parentheses inside template arguments stay."""
    if not name.endswith(")"):
        return name
    depth = 0
    for i in range(len(name) - 1, 0, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            return name[:i] or name
    return name


def _fold(name: str, depth_limit: int) -> str:
    """Replace template arguments deeper than the limit by an ellipsis."""
    out: list[str] = []
    depth = 0
    for i, char in enumerate(name):
        if char == "<":
            depth += 1
            if depth <= depth_limit + 1:
                out.append("<")
                if depth == depth_limit + 1:
                    out.append("…")
        elif char == ">" and depth and (i == 0 or name[i - 1] != "-"):
            if depth <= depth_limit + 1:
                out.append(">")
            depth -= 1
        elif depth <= depth_limit:
            out.append(char)
    return "".join(out)


def short_names(names: list[str], width: int = SHORT_WIDTH) -> list[str]:
    """Return a short name for each full name, distinct wherever the full names are.

    Template arguments are folded; names that then look alike keep the text from their first word that not
    all of them share; what is still alike gets a number.
    """
    simple = [simplify(n) for n in names]
    result = [_crop(_fold(s, 0), width) for s in simple]
    for _ in range(3):
        groups: dict[str, list[int]] = {}
        for i, short in enumerate(result):
            groups.setdefault(short, []).append(i)
        alike = [members for members in groups.values() if len({names[i] for i in members}) > 1]
        if not alike:
            break
        for members in alike:
            for i, label in zip(members, _telling([simple[i] for i in members], width), strict=True):
                result[i] = label
    return _numbered(result, names, width)


def _numbered(shorts: list[str], names: list[str], width: int) -> list[str]:
    """Return the short names with a number behind those that look like the one of another full name."""
    taken: dict[str, str] = {}
    counted: dict[str, int] = {}
    given: dict[tuple[str, str], str] = {}
    result = []
    for short, name in zip(shorts, names, strict=True):
        if (short, name) not in given:
            shown = short
            while taken.setdefault(_visible(shown), name) != name:
                counted[short] = counted.get(short, 1) + 1
                suffix = f" #{counted[short]}"
                shown = _crop(short, width - len(suffix)) + suffix
            given[short, name] = shown
        result.append(given[short, name])
    return result


def _visible(text: str) -> str:
    """Return what a reader sees of a text: no control or zero-width characters, blanks of one kind."""
    return " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).split())


def _telling(names: list[str], width: int) -> list[str]:
    """Return of each name its head and the text from its first word that the others do not all have."""
    words = [_WORD.findall(n) for n in names]
    shared = set(words[0]).intersection(*words[1:])
    labels = []
    for name in names:
        head = re.split(r"[<(]", name, maxsplit=1)[0]
        start = next((m.start() for m in _WORD.finditer(name) if m[0] not in shared), len(head))
        tail = name[start:].strip(" <>(),:")
        if start <= len(head):  # the names differ in their own name, not in its arguments
            room = width - 1 if start == 0 else width * 2 // 3
            before = name[:start]
        else:
            room, before = width * 3 // 5, head
        tail = tail if len(tail) <= room else tail[: room - 1] + "…"
        if start == 0:
            labels.append(tail)
            continue
        space = width - len(tail) - 1
        labels.append(
            (before if len(before) <= space else before[: space - 1] + "…")
            + ("" if start <= len(head) and len(before) <= space else " ")
            + tail
        )
    return [_crop(label, width) for label in labels]


def _crop(text: str, width: int) -> str:
    """Cut the middle out of a text that is too long: beginnings and ends tell kernels apart."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def is_fill(name: str) -> bool:
    """Return whether a kernel of this name fills a buffer with one value, as a cache clear does."""
    return _FILL.search(name) is not None
