"""The paper: evidence, logic and the edit."""
