"""The report as data: what every renderer shows and the JSON file holds."""
