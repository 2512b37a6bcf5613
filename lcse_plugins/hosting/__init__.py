"""What the wrappers in `integrations/` share, and the core itself does not need."""
