"""Pictures before they are vectors.

`scan` lists those of a folder, `locations` says what may be read, `fetch` reads from the web, `keys` finds the picture
that a record of another library names. `reading` decodes safely to RGB, `encoding` streams pictures to an
encoder, `cache` encodes each once. `tiles` cuts a picture into views, `thumbnails` shrinks it for a page.
"""
