"""From a collection of vectors to the best of it: candidates, bounds that prove, and the exact top of many vectors."""
