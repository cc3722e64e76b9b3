"""The words of the questions a user may ask about the open file, and of lists of names in the answers. English, some Portuguese."""

SEL_Q = ["What does this code do?", "Explain this code:", "Summarise this code.", "Summarize this function:", "Explain the selected code.", "What is this for?", "Describe this function in one sentence.",
         "Briefly explain this:", "Explica este código:", "O que faz este código?"]


def lst(xs, pt=False, cap=12):
    """`a`, `b` and `c`."""
    q = [f"`{x}`" for x in xs[:cap]]
    if len(xs) > cap:
        return ", ".join(q) + (" e outros" if pt else " and others")
    return q[0] if len(q) == 1 else ", ".join(q[:-1]) + (" e " if pt else " and ") + q[-1]


def Q(r, en, pt=None):
    """(question template, Portuguese?)"""
    if pt and r.random() < 0.14:
        return r.choice(pt), True
    return r.choice(en), False


def fmt(r, n):
    """A name as a user may type it."""
    x = r.random()
    return f"`{n}`" if x < 0.55 else n if x < 0.85 else f"{n}()" if x < 0.93 else f"`{n}()`"


ASK = {
    "sum": (["What does {n} do?", "what does {n} do", "Summarise {n}.", "Summarize {n}", "Describe {n} in one sentence.", "What is {n} for?", "What is the purpose of {n}?", "Give me a short summary of {n}.", "Explain {n} briefly."],
            ["O que faz {n}?", "Resume {n}.", "Para que serve {n}?", "Descreve {n} numa frase."]),
    "explain": (["Explain {n}.", "How does {n} work?", "Explain {n} and its parameters.", "Tell me about {n}.", "Document {n} for me."], None),
    "params": (["What parameters does {n} take?", "Which arguments does {n} take?", "List the parameters of {n}.", "What are the arguments of {n}?", "parameters of {n}?", "How do I call {n}? Which arguments?"],
               ["Que parâmetros recebe {n}?", "Quais são os argumentos de {n}?"]),
    "where": (["Where is {n} defined?", "Where is {n}?", "Find the definition of {n}.", "Show me the line that defines {n}.", "Which line defines {n}?"],
              ["Onde está definido {n}?", "Onde é definida {n}?"]),
    "returns": (["What does {n} return?", "What is the return type of {n}?", "Which type does {n} return?"], ["O que devolve {n}?", "Qual é o tipo de retorno de {n}?"]),
    "ptype": (["What is the type of `{p}` in {n}?", "Which type does the parameter `{p}` of {n} have?", "What type is {p} in {n}?"], ["Qual é o tipo de `{p}` em {n}?"]),
    "default": (["What is the default value of `{p}` in {n}?", "What does `{p}` default to in {n}?"], ["Qual é o valor por omissão de `{p}` em {n}?"]),
    "base": (["What does the class {n} extend?", "What is the base class of {n}?", "Which class does {n} inherit from?"], ["De que classe herda {n}?"]),
    "parent": (["Which class does {n} belong to?", "In which class is {n} defined?", "{n} is a method of which class?"], ["A que classe pertence {n}?"]),
    "methods": (["Which methods does {n} have?", "List the methods of {n}.", "What methods does the class {n} define?"], ["Que métodos tem {n}?", "Lista os métodos de {n}."]),
    "funcs": (["Which functions does this file define?", "List the functions in this file.", "What functions are defined here?", "list functions", "Name the functions in this file."],
              ["Que funções define este ficheiro?", "Lista as funções deste arquivo."]),
    "classes": (["Which classes does this file define?", "List the classes in this file.", "What classes are defined here?"], ["Que classes define este ficheiro?", "Lista as classes deste arquivo."]),
    "types": (["Which types does this file define?", "List the interfaces and types in this file.", "What types are declared here?"], ["Que tipos define este ficheiro?"]),
    "imports": (["Which modules does this file import?", "What does this file import?", "List the imports.", "Which modules are imported?", "What are the dependencies of this file?"],
                ["Que módulos importa este ficheiro?", "Quais são as importações deste arquivo?"]),
    "file": (["Summarise this file.", "Summarize this file", "What does this file do?", "What is this file about?", "Give me an overview of this file.", "Explain this file.", "summary"],
             ["Resume este ficheiro.", "O que faz este arquivo?", "Sobre o que é este ficheiro?"]),
    "doc": (["Write a docstring for {n}.", "Write a doc comment for {n}.", "Add documentation to {n}.", "Generate a docstring for {n}", "Document {n}."], ["Escreve uma docstring para {n}."]),
    "isdef": (["Is there a function called {n} here?", "Does this file define {n}?", "Is {n} defined in this file?"], ["Este ficheiro define {n}?"]),
}
