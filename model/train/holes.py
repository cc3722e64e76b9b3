"""Where a cursor may stand in a text, and what is to be written there: rests of lines, whole lines, bodies, statements."""
import re

# How often each kind is taken. Those of several lines end where a node of the syntax does: the product cuts there, too.
KINDS = {"rest": 32, "line": 21, "body": 15, "statement": 10, "paragraph": 5, "bracket": 9, "word": 5, "multi": 3}
# In characters: some 110 tokens, what the product lets the model write.
LONGEST = 420


def split(t):
    """Lines and their start offsets."""
    lines = t.split("\n")
    starts, p = [], 0
    for l in lines:
        starts.append(p)
        p += len(l) + 1
    return lines, starts


def indent(line):
    """Characters of white space a line begins with."""
    return len(line) - len(line.lstrip())


def prose_lines(lines):
    """Indices of the lines that are comments or documentation strings."""
    found, quote, block = set(), "", False
    for i, l in enumerate(lines):
        s = l.strip()
        inside = quote or block
        if quote:
            quote = "" if quote in s else quote
        elif block:
            block = "*/" not in s
        elif re.match(r"[rRuU]?(\"{3}|'{3})", s):
            q = s.lstrip("rRuU")[:3]
            inside, quote = True, "" if s.count(q) > 1 else q
        elif s.startswith("/*"):
            inside, block = True, "*/" not in s
        if inside or s.startswith(("//", "#", "*")):
            found.add(i)
    return found


def end_of_body(lines, i):
    """Index behind the last line that is indented more than line i, blank lines at the end left out; i + 1 where there is none."""
    ind, j = indent(lines[i]), i + 1
    while j < len(lines) and j - i < 18 and (not lines[j].strip() or indent(lines[j]) > ind):
        j += 1
    while j > i + 1 and not lines[j - 1].strip():
        j -= 1
    return j


def body_hole(lines, starts, r):
    """The lines of a block, whose head stays."""
    heads = []
    for i, l in enumerate(lines[:-1]):
        s = l.rstrip()
        if s and len(s) <= 160 and s[-1] in "{:" and not s.lstrip().startswith(("#", "//", "*")):
            j = end_of_body(lines, i)
            if i + 1 < j and j - i < 14:
                heads.append((i, j, bool(re.search(r"\bdef \w|\bfunction\b|=>\s*\{$|\)\s*(:[^{]+)?\{$", s))))
    heads = [h for h in heads if h[2]] or heads if r.random() < 0.7 else heads
    if not heads:
        return None
    i, j, _ = r.choice(heads)
    # the cursor behind the head, or on the first line already
    a = starts[i + 1] + indent(lines[i + 1]) if r.random() < 0.6 and lines[i + 1].strip() else starts[i + 1] - 1
    return a, starts[j - 1] + len(lines[j - 1].rstrip())


def statement_end(lines, i):
    """Index behind a statement of several lines that begins on line i, its closing line included."""
    j = end_of_body(lines, i)
    if j < len(lines) and j > i + 1 and indent(lines[j]) == indent(lines[i]) and lines[j].lstrip()[:1] in tuple(")]}"):
        j += 1
    return j


def paragraph_end(lines, i):
    """Index behind the lines up to the next blank one or the end of the block that line i is in."""
    ind, j = indent(lines[i]), i + 1
    while j < len(lines) and j - i < 10 and lines[j].strip() and indent(lines[j]) >= ind and not (indent(lines[j]) == ind and lines[j].lstrip()[:1] in tuple(")]}")):
        j += 1
    return j


def in_line(kind, l, r):
    """(first, last exclusive) column of a hole within a line, or None."""
    ind, n = indent(l), len(l.rstrip())
    if kind == "rest":
        if r.random() < 0.5:
            c = [m.end() for m in re.finditer(r"[\s.(\[{=,:'\"<]", l[:n - 1]) if m.end() > ind]
            return (r.choice(c), n) if c else None
        return (r.randrange(ind + 1, n), n) if n > ind + 1 else None
    if kind == "word":
        ws = list(re.finditer(r"[A-Za-z_$][\w$]{3,}", l))
        if not ws:
            return None
        m = r.choice(ws)
        return r.randrange(m.start() + 1, m.end()), m.end()
    if kind == "bracket":
        c = list(re.finditer(r"[(\[{'\"]([^()\[\]{}'\"]{2,60})(?=[)\]}'\"])", l))
        if not c:
            return None
        m = r.choice(c)
        return m.start() + 1 + (r.randrange(len(m.group(1))) if r.random() < 0.3 else 0), m.end()
    return None


def pick_hole(t, r, lines=None, starts=None, kind=None):
    """Random (start, end, kind) of a realistic hole in text t, or None. Offsets are characters."""
    if lines is None:
        lines, starts = split(t)
    kind = kind or r.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "body":
        x = body_hole(lines, starts, r)
        return (*x, kind) if x and 0 < x[1] - x[0] < LONGEST else None
    prose = prose_lines(lines)
    for _ in range(16):
        i = r.randrange(len(lines))
        l = lines[i]
        # the product is asked for code, seldom for prose
        if len(l.strip()) < 4 or len(l) > 180 or i in prose and r.random() < 0.85:
            continue
        st, ind = starts[i], indent(l)
        if kind == "line":
            return (st + ind if r.random() < 0.8 or i == 0 else st - 1), st + len(l.rstrip()), kind
        if kind in ("rest", "word", "bracket"):
            x = in_line(kind, l, r)
            if x:
                return st + x[0], st + x[1], kind
            continue
        if kind == "multi":
            j = min(len(lines), i + r.randint(2, 4))
        else:
            j = statement_end(lines, i) if kind == "statement" else paragraph_end(lines, i)
        e = starts[j - 1] + len(lines[j - 1].rstrip())
        a = st + ind if kind == "paragraph" or r.random() < 0.6 else r.randrange(st + ind, st + len(l.rstrip()))
        if j > i + 1 and 0 < e - a < LONGEST and lines[j - 1].strip():
            return a, e, kind
    return None
