"""Documents that are read from beginning to end: plain files, and completions as the product asks for them.

A document is a list of (token ids, loss weight in quarters).
"""
from bisect import bisect_right
from controls import EOT, FMID, FPRE, FSEP, FSUF
from holes import pick_hole, split

# As in engine/text/completionPrompt.ts.
SECTION_LINES, SUFFIX_LINES, SUFFIX_TOKENS = 16, 15, 64


class Encoder:
    """The tokenizer, as the documents need it, and how long the text before a cursor may be in a context of so many tokens (completionPrompt.ts: a fifth)."""

    def __init__(self, tok, context=2048):
        self.tok, self.prefix_tokens = tok, context // 5

    def ids(self, s):
        return self.tok.encode(s, add_special_tokens=False).ids if s else []

    def with_ends(self, s):
        """Ids and the offset (characters) at which each one ends."""
        e = self.tok.encode(s, add_special_tokens=False)
        return e.ids, [b for _, b in e.offsets]

    def head(self, path):
        return [FSEP] + self.ids(path + "\n")


def plain(enc, r, d, T):
    """A file, or a part of it that begins with a line."""
    t = d["t"]
    C = int(T * 3.3 * r.uniform(0.4, 1.0))
    if len(t) > C:
        s = 0 if r.random() < 0.4 else r.randrange(len(t) - C + 1)
        s = t.rfind("\n", 0, s) + 1
        t = t[s:s + C]
    ids, h = enc.ids(t), enc.head(d["path"])
    whole = len(t) == len(d["t"]) and len(ids) < T - len(h)
    return [(h, 4), (ids[:T - len(h)], 4)] + ([([EOT], 4)] if whole else [])


def suffix_text(enc, t, starts, offset):
    """What follows the cursor: whole lines, at most 15 behind its own and 64 tokens."""
    line = bisect_right(starts, offset) - 1
    end = starts[line + SUFFIX_LINES + 1] if line + SUFFIX_LINES + 1 < len(starts) else len(t)
    s = t[offset:min(end, offset + SUFFIX_TOKENS * 16)]
    ids, ends = enc.with_ends(s)
    fits = s if len(ids) <= SUFFIX_TOKENS else s[:ends[SUFFIX_TOKENS - 1]]
    if offset + len(fits) == end:
        return fits
    last = fits.rfind("\n")
    return fits if last < 0 else fits[:last + 1]


def tail_start(starts, line, grid=SECTION_LINES):
    """Line the tail begins with: on a grid, one to two sections before the cursor's."""
    return max(0, line // grid * grid - grid)


def completion(enc, r, d, T):
    """File block up to the tail, header again, suffix, then prefix and middle as one text; None where nothing fits into T tokens.

    The middle begins with the token that the cursor cuts or stands behind: the engine takes it off the prompt and has it said again.
    """
    t = d["t"]
    lines, starts = split(t)
    hole = pick_hole(t, r, lines, starts)
    if not hole:
        return None
    a, b, _ = hole
    line = bisect_right(starts, a) - 1
    grid = SECTION_LINES
    while True:
        at = starts[tail_start(starts, line, grid)]
        ids, ends = enc.with_ends(t[at:b])
        n = next((i for i, e in enumerate(ends) if at + e >= a), len(ends))
        if n <= enc.prefix_tokens or grid == 1:
            break
        grid //= 2
    # now and then the text ends at the cursor, as it does where somebody writes a new file
    x = r.random()
    suf = enc.ids("" if x < 0.05 else "\n" if x < 0.08 else suffix_text(enc, t, starts, b))
    head = enc.head(d["path"])
    tail = [([FPRE, FSUF], 0), (suf, 2), ([FMID], 0), (ids[:n], 4), (ids[n:] + [EOT], 8)]
    room = T + 1 - 2 * len(head) - sum(len(i) for i, _ in tail)
    if room < 0:
        return None
    block = block_before(enc, r, t, starts, at, room)
    return [(head, 4), (block, 4), (head, 0), *tail] if block else [(head, 4), *tail]


def block_before(enc, r, t, starts, at, room):
    """Ids of the file's text that end wholly before offset `at`, as far back as there is room: from the beginning, else from a line on the grid."""
    if at == 0 or room < 40:
        return []
    first = 0
    if at > room * 3:
        first = bisect_right(starts, at - room * 3 - 1)
        first = -(-first // SECTION_LINES) * SECTION_LINES
    while first < len(starts) and starts[first] < at:
        ids, ends = enc.with_ends(t[starts[first]:at + 80])
        n = bisect_right(ends, at - starts[first])
        if n <= room:
            return ids[:n]
        first += SECTION_LINES
    return []
