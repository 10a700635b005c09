"""Other tools, run in processes of their own on the same file. Nothing of theirs is imported into ours."""
