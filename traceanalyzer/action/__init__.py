"""The GitHub action's report step: traces of a workspace in; step summary, comment, pages, outputs and a gate out."""
