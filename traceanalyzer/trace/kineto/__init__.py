"""The Kineto decoder: Chrome JSON text to the tables every format fills."""
