"""Pictures before they are vectors.

`locations` says what may be read to get one and `fetch` reads it from the web; `keys` finds the picture that a record
of another library names; `cache` encodes each picture once; `text_vectors` notices vectors that are not of pictures;
`tiles` cuts a picture into views, `thumbnails` shrinks it for a page.
"""
