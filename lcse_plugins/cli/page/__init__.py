"""The page: search while typing, correct the reading, see why. `app` serves it, `report` writes it as one file.

`collections` is what it searches: a folder's index, or a Qdrant collection. `page.html`, `page.css` and `page.js` are
the page itself, the same for both.
"""
