"""Ids of the control tokens, and paths as the product writes them."""

EOT, FPRE, FMID, FSUF, PAD, REPO, FSEP, IMS, IME = range(9)


def short_path(path, r):
    """The last two parts of a path, as the product shows it (engine/text/syntax/sourceDocument.ts); now and then one or three."""
    n = r.choices([1, 2, 3], [8, 80, 12])[0]
    return "/".join(path.split("/")[-n:])
