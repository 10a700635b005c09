"""What a change would be worth: replays of the run's own rows through the queue model with one thing changed."""
