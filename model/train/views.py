"""A part of a file as chat shows it, with what can be asked about it."""
from codeinfo import info


def chat_view(d, r, T, strip=None, budget=None):
    """(text shown, what is known of it) of a cropped file, its doc comments taken out in half of the cases; None where there is nothing to ask.

    `budget` is the most characters of text; without it, what T tokens hold beside questions and answers.
    """
    x = info(d["t"], d["lang"]) if d["lang"] != "other" else None
    if not x or not x[0]:
        return None
    ents, imports, hdoc, hlines = x
    lines = d["t"].split("\n")
    strip = (r.random() < 0.5) if strip is None else strip
    gone = set()
    if strip:
        for e in ents:
            if e.doc_lines:
                gone.update(range(*e.doc_lines))
        if hlines and r.random() < 0.7:
            gone.update(range(*hlines))
    C = int((T - (110 if T <= 512 else 220)) * 3.2 * r.uniform(0.45, 1.0)) if budget is None else budget
    starts = [0] + [e.line for e in ents if e.line > 0 and e.kind in ("function", "class", "method")]
    lo = 0 if r.random() < 0.6 or len(d["t"]) < C else r.choice(starts)
    if lo and not strip:
        e = next(e for e in ents if e.line == lo)
        if e.doc_lines and e.doc_lines[0] < lo:
            lo = e.doc_lines[0]
    used, hi, shown = 0, lo, []
    while hi < len(lines):
        if hi not in gone:
            if used + len(lines[hi]) + 1 > C:
                break
            used += len(lines[hi]) + 1
            shown.append(lines[hi])
        hi += 1
    vis = [e for e in ents if lo <= e.line < hi]
    if len(shown) < 4 or not vis:
        return None
    content = "\n".join(shown).strip("\n") + "\n"
    return content, {"path": d["path"], "lang": d["lang"], "ents": vis, "imports": [m for m, i in imports if lo <= i < hi], "hdoc": hdoc if lo == 0 else "",
                     "lines": lines, "lo": lo, "hi": hi, "complete": lo == 0 and hi >= len(lines), "gone": gone, "content": content, "stripped": strip}
