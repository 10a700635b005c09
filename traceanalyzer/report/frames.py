"""Report tables as pandas frames with documented columns, and the JSON Schema and page made from them.

The columns come from the dataclasses of :mod:`traceanalyzer.report.model`: one source for frames, the JSON
Schema file and docs/schema.md.
"""

from __future__ import annotations

import types
import typing
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

from traceanalyzer.report import model, units
from traceanalyzer.report.compare import model as comparison

if TYPE_CHECKING:
    import pandas as pd

ROW_TYPES: dict[str, type[Any]] = {
    "kernels": units.KernelRow,
    "copies": units.KernelRow,
    "devices": model.DeviceRow,
    "streams": model.StreamRow,
    "threads": model.ThreadRow,
    "ops": units.OpRow,
    "idle": model.IdleRow,
    "ledger": model.LedgerRow,
    "ledger items": model.LedgerItemRow,
    "worth": model.WorthRow,
    "steps": units.StepRow,
    "findings": model.FindingRow,
}
"""Row type of each table of a report."""

_DTYPES = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}


def report_frame(table: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one report table as a frame; nested values (variants, pauses, numbers) stay Python objects."""
    return typed_frame(ROW_TYPES[table], rows)


def ledger_frame(ledger: list[model.LedgerRow]) -> pd.DataFrame:
    """Return the items of the ledger, with the device and window of each."""
    rows = [
        {"device": row.device, "owner": row.owner, "window": row.window} | asdict(item)
        for row in ledger
        for item in row.items
    ]
    return _placed(typed_frame(model.LedgerItemRow, rows).rename(columns={"class_": "class"}), rows)


def worth_frame(ledger: list[model.LedgerRow]) -> pd.DataFrame:
    """Return what changes are worth, with the device and window of each."""
    rows = [
        {"device": row.device, "owner": row.owner, "window": row.window} | asdict(worth)
        for row in ledger
        for worth in row.worth
    ]
    return _placed(typed_frame(model.WorthRow, rows), rows)


def _placed(frame: pd.DataFrame, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return a frame with the device and window of its rows before its columns."""
    import pandas as pd

    for place, (name, dtype) in enumerate({"device": "Int64", "owner": "string", "window": "string"}.items()):
        frame.insert(place, name, pd.array([r[name] for r in rows], dtype=dtype))  # type: ignore[call-overload]
    return frame


def typed_frame(row_type: type[Any], rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a frame with a column per field of their type."""
    import pandas as pd

    hints = typing.get_type_hints(row_type)
    columns = {}
    for field in fields(row_type):
        dtype = _DTYPES.get(_without_none(hints[field.name])[0], "object")
        columns[field.name] = pd.array([row[field.name] for row in rows], dtype=dtype)  # type: ignore[call-overload]
    return pd.DataFrame(columns)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return the type without None, and whether None was allowed."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        nullable = len(rest) < len(typing.get_args(hint))
        if len(rest) == 1:
            return rest[0], nullable
        return Union[tuple(rest)], nullable  # noqa: UP007 - built from a tuple
    return hint, False


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON report, version 1. More fields may be added to a report."""
    definitions: dict[str, Any] = {}
    root = _object(model.ReportData, definitions)
    root["properties"]["schema"] = {"const": model.SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:traceanalyzer:report:1",
        "title": "traceanalyzer report, version 1",
        **root,
        "$defs": definitions,
    }


def compare_schema() -> dict[str, Any]:
    """Return the JSON Schema of the JSON comparison, version 1: of one head, or of several in ``comparisons``."""
    definitions: dict[str, Any] = {}
    for row_type in (comparison.ComparisonData, comparison.Comparisons):
        found = _plain_schema(row_type, definitions)
        definitions[found["$ref"].rpartition("/")[2]]["properties"]["schema"] = {"const": comparison.COMPARE_SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:traceanalyzer:compare:1",
        "title": "traceanalyzer comparison, version 1",
        "anyOf": [{"$ref": f"#/$defs/{t.__name__}"} for t in (comparison.ComparisonData, comparison.Comparisons)],
        "$defs": definitions,
    }


def _object(row_type: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    model.load_every_type()
    hints = typing.get_type_hints(row_type)
    names = [f.name for f in fields(row_type) if f.metadata.get("json", True)]
    absent = {f.name for f in fields(row_type) if f.metadata.get("absent")}
    return {
        "type": "object",
        "description": " ".join((row_type.__doc__ or "").split()),
        "properties": {n.rstrip("_"): _schema(hints[n], definitions) for n in names},
        "required": [n.rstrip("_") for n in names if n not in absent],
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    inner, nullable = _without_none(hint)
    result = _plain_schema(inner, definitions)
    return {"anyOf": [result, {"type": "null"}]} if nullable else result


def _plain_schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(a, definitions) for a in args]}
    if origin is list:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [_schema(a, definitions) for a in args],
            "minItems": len(args),
            "maxItems": len(args),
        }
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # variants hold their own type
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[hint]}
