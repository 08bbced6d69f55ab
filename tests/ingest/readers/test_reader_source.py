"""The definitions of source files, in many languages."""

from __future__ import annotations

import re

import pytest

from rolebundle.ingest.chunking import ChunkSettings, chunk_document
from rolebundle.ingest.parsed import ParsedDocument
from support.reading import read_document

FILES = {
    "a.js": (
        """\
// head
import x from 'y';

/** Doc
 * text function no() {
 */
export default class Foo extends Bar {
  constructor(a, b = 1) {
    super();
    if (a) {
      b();
    }
  }
  async get(x) {
    items.forEach(function (i) {
      go(i);
    });
  }
}

export const add = (a, b) => a + b;
const t = `
function inTemplate() {
`;
function last() {
  return 1;
}
module.exports = { add };
""",
        ["class Foo", "class Foo > constructor", "class Foo > get", "add", "function last"],
    ),
    "a.rs": (
        """\
use std;

#[derive(Debug)]
pub struct A<'a> {
    x: &'a str,
}

impl<'a> A<'a> {
    /// new
    pub fn new() -> Self {
        A {}
    }

    pub(crate) async fn go(&self) {}
}
mod tests {
    #[test]
    fn t() {}
}
""",
        [
            "struct A",
            "impl<'a> A<'a>",
            "impl<'a> A<'a> > fn new",
            "impl<'a> A<'a> > fn go",
            "mod tests",
            "mod tests > fn t",
        ],
    ),
    "a.java": (
        """\
package a;

/** Doc */
@Service
public class A extends B {
    private int x = foo(1);

    @Override
    public List<String> get(int a,
            int b) {
        if (a > b) {
            return foo(a);
        } else if (x) {
        }
    }

    static void run() throws Exception {
    }
    interface In { void x(); }
}
""",
        ["class A", "class A > get", "class A > run", "class A > interface In"],
    ),
    "a.c": (
        """\
#include <stdio.h>

#define A 1

struct foo {
	int a;
};

static int
bar (int a)
{
#ifdef X
	x();
#endif
out:
	return baz(a);
}

int main(int argc, char **argv) {
	printf("hi");
	return 0;
}

static struct foo *get(void)
{
}
int x = 3;
int fwd(int a);
""",
        ["struct foo", "bar", "main", "get"],
    ),
    "a.py": (
        '''\
class A:
    """Doc
def no(): x
"""

    @deco(
        1,
    )
    async def f(self):
        def inner():
            pass

        return 1

    x = 1

# comment
@a
def g(): pass
if __name__ == "__main__":
    g()
''',
        ["class A", "class A > def f", "class A > def f > def inner", "def g"],
    ),
    "a.ts": (
        "export interface A {\n  b: string;\n}\nexport type T = string;\n@Component({\n  x,\n})\nexport class C {\n  private async run(a: string): Promise<void> {\n  }\n}\n",
        ["interface A", "type T", "class C", "class C > run"],
    ),
    "a.go": (
        "// Foo does.\nfunc Foo(a int) error {\n}\n\ntype S struct {\n}\n\nfunc (s *S) Bar() {\n}\n",
        ["func Foo", "type S", "func (s *S) Bar"],
    ),
    "a.cs": (
        "namespace X\n{\n    [Test]\n    public class A\n    {\n        public int Get(int a)\n        {\n            return Foo(a);\n        }\n    }\n}\n",
        ["namespace X", "namespace X > class A", "namespace X > class A > Get"],
    ),
    "a.cpp": (
        "template <typename T>\nclass A : public B {\n  A() : x_(1) {}\n  int get() const {\n    return x_;\n  }\n};\n\nnamespace n {\nvoid A::go(int x) {\n  for (auto& a : b) {\n  }\n}\n}\n",
        ["class A", "class A > get", "namespace n", "A::go"],
    ),
    "a.rb": (
        "module M\n  class A < B\n    def x(a)\n      1\n    end\n\n    def self.y?\n    end\n  end\nend\n",
        [
            "module M",
            "module M > class A",
            "module M > class A > def x",
            "module M > class A > def self.y?",
        ],
    ),
    "a.php": (
        "<?php\nnamespace A;\n\nfinal class A\n{\n    public function get(int $x): int\n    {\n    }\n}\nfunction b() {}\n",
        ["namespace A", "class A", "class A > function get", "function b"],
    ),
    "a.sh": (
        "set -e\n\nfoo() {\n  echo\n}\n\nfunction bar {\n  cat\n}\nfoo\n",
        ["foo", "function bar"],
    ),
    "a.kt": (
        "data class A(val x: Int)\n\nfun String.b(x: Int): Int {\n}\nobject O {\n    private fun c() = 1\n}\n",
        ["class A", "fun String.b", "object O", "object O > fun c"],
    ),
    "a.sql": (
        "CREATE TABLE IF NOT EXISTS foo (\n  id int\n);\n\ncreate or replace function bar() returns int as $$\n",
        ["CREATE TABLE IF NOT EXISTS foo", "create or replace function bar"],
    ),
    "a.yaml": ("name: x\non:\n  push: y\njobs:\n  a: b\n", ["name", "on", "jobs"]),
    "a.toml": ("x = 1\n\n[project]\nname = 1\n\n[[tool.x]]\ny = 1\n", ["[project]", "[[tool.x]]"]),
    "Makefile": ("X := 1\nall: a b\n\tcc\n\nclean:\n\trm\n", ["all", "clean"]),
    "a.swift": (
        "@objc\npublic class A: B {\n    func go(_ a: Int) -> Int {\n    }\n    init(x: Int) {\n    }\n}\n",
        ["class A", "class A > func go"],
    ),
    "a.lua": (
        "local function a(x)\nend\n\nfunction M.b()\nend\nM.c = function()\nend\n",
        ["function a", "function M.b", "M.c"],
    ),
    "a.pl": (
        "package A;\n\nsub foo {\n  1;\n}\n\nsub bar { 2 }\n",
        ["package A", "sub foo", "sub bar"],
    ),
    "a.clj": (
        "(ns a.b)\n\n(defn foo [x]\n  (bar x))\n\n(def x 1)\n",
        ["ns a.b", "defn foo", "def x"],
    ),
    "a.ex": (
        "defmodule A do\n  @doc 1\n  def foo(a) do\n    1\n  end\n\n  defp bar, do: 2\nend\n",
        ["defmodule A", "defmodule A > def foo", "defmodule A > defp bar"],
    ),
    "a.hs": (
        "module A where\n\nfoo :: Int -> Int\nfoo x = 1\n\ndata B = C\n",
        ["module A", "foo", "data B"],
    ),
}


def paths(document: ParsedDocument) -> list[str]:
    """The path of each definition, as a chunk of its own would have it."""
    chunks = chunk_document("d", document, ChunkSettings(1, 10_000))
    return list(dict.fromkeys(" > ".join(chunk.headings) for chunk in chunks if chunk.headings))


@pytest.mark.parametrize("path", FILES)
def test_definitions_have_their_names(path: str):
    text, expected = FILES[path]
    assert paths(read_document(text, path)) == expected


def blocks(document: ParsedDocument) -> list[tuple[int, str, int, int]]:
    return [(b.level, b.heading, b.start_line, b.end_line) for b in document.blocks]


def test_a_definition_has_its_comments_and_decorators_and_ends_with_its_body():
    assert blocks(read_document(FILES["a.py"][0], "a.py")) == [
        (1, "class A", 1, 4),
        (2, "def f", 6, 9),
        (3, "def inner", 10, 11),
        (3, "", 13, 13),
        (2, "", 15, 15),
        (1, "def g", 17, 19),
        (1, "", 20, 21),
    ]


def test_a_definition_in_c_has_its_type_labels_and_directives():
    assert (1, "bar", 9, 17) in blocks(read_document(FILES["a.c"][0], "a.c"))


def test_comments_and_strings_of_several_lines_define_nothing():
    text = (
        'x = """\ndef a():\n    pass\n"""\n\ny = 1  # """\ndef b():\n    """\nc\n    """\n    z\n'
    )
    assert blocks(read_document(text, "a.py")) == [
        (0, "", 1, 4),
        (0, "", 6, 6),
        (1, "def b", 7, 11),
    ]


def test_a_file_that_does_not_parse_has_an_outline():
    text = "class A:\n    def b(:\n        )))\n\n    def c(self):\n"
    assert paths(read_document(text, "a.py")) == ["class A", "class A > def b", "class A > def c"]


def test_a_passage_with_several_definitions_names_them_all():
    text = "class A:\n    x = 1\n\n" + "".join(
        f"    def f{n}(self):\n        return {'a + ' * 20}1\n\n" for n in range(6)
    )
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(400, 600))
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.headings == ("class A", ", ".join(re.findall(r"def f\d", chunk.content)))


@pytest.mark.parametrize("size", [150, 400])
def test_passages_end_at_definitions(size: int):
    text = "".join(f"def f{n}():\n    a = {n}\n\n    return a + {n}\n\n\n" for n in range(60))
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(size, 600))
    assert len(chunks) > 5
    assert all(chunk.content.startswith("def f") for chunk in chunks)


def test_a_long_definition_is_split_and_each_part_has_its_name():
    text = "def f():\n" + "".join(f"    a{n} = {n}\n" for n in range(300))
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings())
    assert len(chunks) > 1
    assert {chunk.headings for chunk in chunks} == {("def f",)}


def test_a_hostile_line_takes_little_time():
    for path in FILES:
        for part in ("(", "a(", "a ", "<a>", "[", "static ", "a::", '"""', "/*", "`", "\\"):
            read_document(part * (300 // len(part)) + "\n" + part * 5_000, path)
