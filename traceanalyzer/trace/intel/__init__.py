"""Intel: the Chrome JSON of unitrace."""
