"""Answers to questions about a file, read off its definitions and doc comments."""
from codeinfo import clean_sentence
from questions import ASK, Q, fmt, lst

# What is asked how often. The product answers facts (parameters, imports, where, ...) from its own syntax tree; what is left to the model is to explain and to summarise.
WEIGHT = {"sum": 36, "explain": 12, "file": 18, "doc": 8, "missing": 5, "params": 3, "funcs": 3, "methods": 2, "where": 2, "returns": 2, "imports": 2,
          "ptype": 1, "default": 1, "base": 1, "parent": 1, "classes": 1, "types": 1, "isdef": 1}


def uniq(xs):
    return list(dict.fromkeys(xs))


def file_answer(c, r):
    """Header sentence, if any, and a list of the main definitions."""
    parts = []
    if c["hdoc"]:
        s = clean_sentence(c["hdoc"])
        if s:
            parts.append(s)
    cl = uniq([e.name for e in c["ents"] if e.kind == "class"])
    fn = uniq([e.name for e in c["ents"] if e.kind == "function"])
    ty = uniq([e.name for e in c["ents"] if e.kind in ("interface", "type", "enum")])
    bits = []
    for xs, one, many in ((cl, "the class ", "the classes "), (fn, "the function ", "the functions "), (ty, "the type ", "the types ")):
        if xs:
            bits.append((one if len(xs) == 1 else many) + lst(xs, cap=5))
    if bits:
        b = bits[0] if len(bits) == 1 else ", ".join(bits[:-1]) + " and " + bits[-1] if len(bits) == 3 else " and ".join(bits)
        parts.append(("It defines " if parts else "This file defines ") + b + ".")
    if not parts:
        return None
    return " ".join(parts)


def qa(kind, c, r, names):
    """One (question, answer) of a kind, or None."""
    E = c["ents"]
    fns = [e for e in E if e.kind in ("function", "method")]
    pick = lambda xs: r.choice(xs) if xs else None
    n_of = {}
    for e in E:
        n_of[e.name] = n_of.get(e.name, 0) + 1
    one = lambda xs: [e for e in xs if n_of[e.name] == 1 and e.name != "constructor" and not (e.name.startswith("__") and kind in ("sum", "explain"))]
    if kind == "missing":
        for _ in range(10):
            n = r.choice(names)
            if n not in c["content"]:
                k = r.choices(["sum", "params", "where", "returns", "explain", "isdef", "doc", "methods"], [5, 3, 3, 1, 1, 2, 1, 1])[0]
                q, pt = Q(r, *ASK[k])
                return q.format(n=fmt(r, n)), (f"Não existe `{n}` em {c['path']}." if pt else f"There is no `{n}` in {c['path']}.")
        return None
    q, pt = Q(r, *ASK[kind])
    if kind in ("sum", "explain", "doc"):
        # the whole definition (or at least a good part of it) must be visible
        xs = [e for e in one(E) if e.doc and e.kind in ("function", "method", "class", "interface", "type") and (e.end <= c["hi"] or c["hi"] - e.line > 10)]
        if kind == "doc":
            xs = [e for e in xs if c["stripped"] and e.doc_lines and e.kind in ("function", "method", "class")]
        e = pick(xs)
        if not e:
            return None
        a = e.doc
        if kind == "explain":
            if e.kind in ("function", "method") and e.ok_params:
                a += f" It takes {lst(e.params)}." if e.params else " It takes no parameters."
                if e.returns and e.returns not in ("None", "void"):
                    a += f" It returns `{e.returns}`."
            elif e.kind == "class":
                ms = uniq([m.name for m in E if m.parent == e.name])
                if ms:
                    a += f" Its methods include {lst(ms, cap=5)}."
        if kind == "doc":
            a = f'```python\n"""{e.doc}"""\n```' if c["lang"] == "py" else f"```ts\n/**\n * {e.doc}\n */\n```"
        return q.format(n=fmt(r, e.name)), a
    if kind == "params":
        e = pick([e for e in one(fns) if e.ok_params and len(e.params) <= 10])
        if not e:
            return None
        if pt:
            a = f"`{e.name}` recebe {lst(e.params, True)}." if e.params else f"`{e.name}` não recebe parâmetros."
        else:
            a = f"`{e.name}` takes {lst(e.params)}." if e.params else f"`{e.name}` takes no parameters."
        return q.format(n=fmt(r, e.name)), a
    if kind == "where":
        e = pick(one(E))
        if not e or len(c["lines"][e.line]) > 140:
            return None
        l = c["lines"][e.line].strip()
        a = f"`{e.name}` está definido aqui: `{l}`" if pt else f"`{e.name}` is defined here: `{l}`"
        return q.format(n=fmt(r, e.name)), a
    if kind == "isdef":
        e = pick(one(E))
        if not e:
            return None
        l = c["lines"][e.line].strip()
        if len(l) > 140:
            return None
        return q.format(n=fmt(r, e.name)), (f"Sim: `{l}`" if pt else f"Yes: `{l}`")
    if kind == "returns":
        e = pick([e for e in one(fns) if e.returns])
        return e and (q.format(n=fmt(r, e.name)), (f"`{e.name}` devolve `{e.returns}`." if pt else f"`{e.name}` returns `{e.returns}`."))
    if kind == "ptype":
        e = pick([e for e in one(fns) if e.types])
        if not e:
            return None
        p = r.choice(sorted(e.types))
        return q.format(n=fmt(r, e.name), p=p), (f"`{p}` é do tipo `{e.types[p]}`." if pt else f"`{p}` has the type `{e.types[p]}`.")
    if kind == "default":
        e = pick([e for e in one(fns) if e.defaults])
        if not e:
            return None
        p = r.choice(sorted(e.defaults))
        return q.format(n=fmt(r, e.name), p=p), (f"O valor por omissão de `{p}` é `{e.defaults[p]}`." if pt else f"`{p}` defaults to `{e.defaults[p]}`.")
    if kind == "base":
        e = pick([e for e in one(E) if e.kind == "class" and e.bases])
        return e and (q.format(n=fmt(r, e.name).replace("()", "")), (f"`{e.name}` herda de {lst(e.bases, True)}." if pt else f"`{e.name}` extends {lst(e.bases)}."))
    if kind == "parent":
        e = pick([e for e in one(E) if e.kind == "method" and any(x.name == e.parent and x.kind == "class" for x in E)])
        return e and (q.format(n=fmt(r, e.name)), (f"`{e.name}` é um método de `{e.parent}`." if pt else f"`{e.name}` is a method of `{e.parent}`."))
    if kind == "methods":
        e = pick([e for e in one(E) if e.kind == "class" and any(m.parent == e.name for m in E)])
        if not e:
            return None
        ms = uniq([m.name for m in E if m.parent == e.name and m.kind == "method"])
        if not ms:
            return None
        return q.format(n=fmt(r, e.name).replace("()", "")), (f"`{e.name}` tem {lst(ms, True)}." if pt else f"`{e.name}` has {lst(ms)}.")
    if kind in ("funcs", "classes", "types"):
        k = {"funcs": ("function",), "classes": ("class",), "types": ("interface", "type", "enum")}[kind]
        xs = uniq([e.name for e in E if e.kind in k])
        w = {"funcs": ("functions", "funções"), "classes": ("classes", "classes"), "types": ("types", "tipos")}[kind]
        if not xs:
            if kind == "types" or not c["complete"]:
                return None
            return q, (f"Este ficheiro não define {w[1]}." if pt else f"This file defines no {w[0]}.")
        return q, (f"Este ficheiro define {lst(xs, True)}." if pt else f"This file defines {lst(xs)}.")
    if kind == "imports":
        xs = uniq(c["imports"])
        if not xs:
            if not c["complete"]:
                return None
            return q, ("Este ficheiro não importa módulos." if pt else "This file imports no modules.")
        return q, (f"Este ficheiro importa {lst(xs, True)}." if pt else f"This file imports {lst(xs)}.")
    if kind == "file":
        a = file_answer(c, r)
        return a and (q, a)


def make_turns(c, r, names, want):
    """Several different question/answer pairs about one view."""
    out, kinds, tries = [], [], 0
    while len(out) < want and tries < want * 5:
        tries += 1
        k = r.choices(list(WEIGHT), list(WEIGHT.values()))[0]
        if k in kinds and k not in ("sum", "params", "where"):
            continue
        x = qa(k, c, r, names)
        if x and x[0] not in [o[0] for o in out] and len(x[1]) < 500:
            out.append(x)
            kinds.append(k)
    return out
