"""What must never be trained on: the projects that the product is measured and its weights are fitted on, by name and by their lines."""
import os, tarfile, zipfile

# owner/name of repositories and names of packages, in small letters; the held-out projects of corpus.py besides
NEVER_PROJECTS = {
    # suite `quality` (test/bench/quality/sources.ts)
    "mobxjs/mobx", "immerjs/immer", "reduxjs/reselect", "googlechrome/workbox", "tj/commander.js", "mochajs/mocha",
    "fastify", "koa", "commander", "mocha", "httpx", "attrs", "click",
    # packages that weights of the product are fitted on
    "reactivex/rxjs", "reduxjs/redux", "reduxjs/redux-toolkit", "colinhacks/zod", "expressjs/express", "webpack/webpack", "nodejs/undici",
    "knex/knex", "gcanti/fp-ts", "psf/requests", "pallets/flask", "textualize/rich", "pallets/werkzeug", "pydantic/pydantic",
    "encode/starlette", "kludex/starlette", "requests", "flask", "rich", "werkzeug", "pydantic", "starlette",
    # suite `names`
    "ueberdosis/tiptap", "prosemirror/prosemirror-model", "preactjs/preact", "moment/luxon",
    "mahmoud/boltons", "boltons", "arrow-py/arrow", "arrow",
    # suite `places`
    "ajv-validator/ajv", "hopding/pdf-lib", "software-mansion/react-native-screens", "leaflet/leaflet", "ohmjs/ohm",
}
SOURCE = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".py")
# Shorter lines stand in every project.
SHORTEST = 25
# A file may share this part of its lines, or this many: idioms, imports, the words of a licence.
MOST_SHARED, FEW = 0.15, 4


def lines_of(text):
    """The set of a text's lines that say something, without white space at their ends."""
    return {s for s in map(str.strip, text.split("\n")) if len(s) >= SHORTEST and not s.startswith(("import ", "from ", "export * from"))}


def shares_lines(text, forbidden):
    """Whether a text shares more lines with the forbidden set than idioms explain."""
    own = lines_of(text)
    shared = len(own & forbidden)
    return shared > FEW and shared > MOST_SHARED * len(own)


def texts_below(folder):
    """Every source text below a folder, in packed packages too."""
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            if name.endswith(SOURCE):
                with open(path, "rb") as f:
                    yield f.read().decode("utf-8", "replace").replace("\r\n", "\n")
            elif name.endswith((".tgz", ".tar.gz")):
                with tarfile.open(path) as t:
                    for m in t:
                        if m.isfile() and m.name.endswith(SOURCE):
                            yield t.extractfile(m).read().decode("utf-8", "replace").replace("\r\n", "\n")
            elif name.endswith((".whl", ".zip")):
                with zipfile.ZipFile(path) as z:
                    for n in z.namelist():
                        if n.endswith(SOURCE):
                            yield z.read(n).decode("utf-8", "replace").replace("\r\n", "\n")
