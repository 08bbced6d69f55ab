from support.reading import read_document


def read(text, path="a.py"):
    return read_document(text, path)


def test_a_unit_includes_its_indented_body():
    text = "import os\n\n\ndef f():\n    a = 1\n\n    return a\n\n\nclass C:\n\n    x = 1\n"
    document = read(text)
    assert [(b.kind, b.start_line, b.end_line) for b in document.blocks] == [
        ("code", 1, 1),
        ("code", 4, 7),
        ("code", 10, 12),
    ]


def test_a_closing_brace_ends_its_unit():
    document = read("fn f() {\n  a();\n\n}\n\nfn g() {}\n", "a.rs")
    assert [(b.start_line, b.end_line) for b in document.blocks] == [(1, 4), (6, 6)]


def test_an_indented_start_is_a_unit():
    document = read("\n    odd\n\nx\n")
    assert [(b.start_line, b.end_line) for b in document.blocks] == [(2, 2), (4, 4)]
