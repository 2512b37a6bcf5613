"""The commands of `lcse`, one module each."""
