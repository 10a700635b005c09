"""What the charts of a page show: data only."""
