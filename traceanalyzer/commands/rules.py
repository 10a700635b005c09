"""``traceanalyze rules`` and ``traceanalyze rule CODE``."""

from __future__ import annotations

import json

import click

from traceanalyzer.commands.output import utf8_stdout, write_output


@click.command(name="rules", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--format", "output_format", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True
)
def rules(output_format: str) -> None:
    """List every rule."""
    from traceanalyzer.doctor.docs import rule_dict, rules_page, summary
    from traceanalyzer.doctor.registry import ALL_RULES

    if output_format == "json":
        text = json.dumps([rule_dict(r) for r in ALL_RULES], indent=1)
    elif output_format == "markdown":
        text = rules_page()
    else:
        width = max(len(r.name) for r in ALL_RULES)
        text = "\n".join(f"{r.code}  {r.name:{width}}  {summary(r)}" for r in ALL_RULES)
    utf8_stdout()
    write_output(text, None, form=output_format)


@click.command(name="rule", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("code")
@click.option(
    "--format", "output_format", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True
)
def rule(code: str, output_format: str) -> None:
    """Explain one rule: what it checks, how it decides, what to do."""
    from traceanalyzer.doctor.docs import rule_dict, rule_markdown, rule_text
    from traceanalyzer.doctor.registry import rule_of

    found = rule_of(code)
    text = {"text": rule_text, "markdown": rule_markdown}.get(
        output_format, lambda r: json.dumps(rule_dict(r), indent=1)
    )(found)
    utf8_stdout()
    write_output(text, None, form=output_format)
