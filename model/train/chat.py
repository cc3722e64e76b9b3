"""Documents with questions and answers: about the open file, about a selection, small talk. Lists of (token ids, loss weight in quarters)."""
from answers import make_turns
from codeinfo import info
from controls import EOT, IME, IMS
from questions import SEL_Q
from talk import AFTER, SYSTEM, TALK
from views import chat_view


def chat(enc, r, d, T, names):
    """One document of about T tokens, or None. `names` are definitions of other files, to ask for what is not there."""
    x = r.random()
    doc = small_talk(enc, r, d, T) if x < 0.04 else selection(enc, r, d, T) if x < 0.15 else about_file(enc, r, d, T, names)
    return doc if doc and sum(len(i) for i, _ in doc) <= T + 1 else None


def about_file(enc, r, d, T, names):
    """The file, then questions about it."""
    x = chat_view(d, r, T)
    turns = x and make_turns(x[1], r, names, r.randint(1, 3) if T <= 600 else r.randint(2, 5))
    if turns and r.random() < 0.08:
        q, a = r.choices(AFTER, [6, 3, 2, 1])[0]
        turns = [*turns, (r.choice(q), r.choice(a))]
    return [(enc.head(d["path"]) + enc.ids(x[0]), 4), *turns_of(enc, r, turns)] if turns else None


def turns_of(enc, r, turns):
    """Question and answer pairs in the model's chat layout."""
    doc = []
    if r.random() < 0.05:
        doc.append(([IMS] + enc.ids("system\n" + r.choice(SYSTEM)) + [IME] + enc.ids("\n"), 1))
    for i, (q, a) in enumerate(turns):
        last = i == len(turns) - 1
        doc.append(([IMS] + enc.ids("user\n" + q) + [IME] + enc.ids("\n") + [IMS] + enc.ids("assistant\n"), 1))
        doc.append((enc.ids(a) + [IME] + ([EOT] if last else []), 8))
        if not last:
            doc.append((enc.ids("\n"), 1))
    return doc


def selection(enc, r, d, T):
    """A question about code in the message itself, which the doc comment answers."""
    x = info(d["t"], d["lang"]) if d["lang"] != "other" else None
    ents = [e for e in x[0] if e.doc and e.doc_lines and 3 <= e.end - e.line <= (30 if T <= 512 else 60)] if x else []
    if not ents:
        return None
    e = r.choice(ents)
    gone = set(range(*e.doc_lines))
    code = [l for i, l in enumerate(d["t"].split("\n")[e.line:e.end], e.line) if i not in gone]
    ind = min((len(l) - len(l.lstrip()) for l in code if l.strip()), default=0)
    text = "\n".join(l[ind:] for l in code)
    fence = r.choice([{"py": "python", "ts": "typescript"}[d["lang"]], {"py": "py", "ts": "ts"}[d["lang"]], ""])
    doc = [(enc.head(d["path"]), 1)] if r.random() < 0.3 else []
    return doc + turns_of(enc, r, [(f"{r.choice(SEL_Q)}\n```{fence}\n{text}\n```", e.doc)])


def small_talk(enc, r, d, T):
    """A greeting and the like, half of them behind a file."""
    q, a = r.choice(TALK)
    doc = turns_of(enc, r, [(r.choice(q), r.choice(a))])
    x = chat_view(d, r, T) if r.random() < 0.5 else None
    return [(enc.head(d["path"]) + enc.ids(x[0]), 4)] + doc if x else doc
