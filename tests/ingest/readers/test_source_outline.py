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
    "a.ts": (
        """\
export interface A {
  b: string;
}
export type T = string | number;
@Component({
  selector: 'x',
})
export class C {
  private async run(a: string): Promise<void> {
    x();
  }
}
""",
        ["interface A", "type T", "class C", "class C > run"],
    ),
    "a.go": (
        """\
package main

import "fmt"

// Foo does.
func Foo(a int) error {
	return nil
}

type S struct {
	A int
}

func (s *S) Bar() {
}

var x = 1
""",
        ["func Foo", "type S", "func (s *S) Bar"],
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
    "a.cs": (
        """\
namespace X
{
    [Test]
    public class A
    {
        public int Get(int a)
        {
            return Foo(a);
        }
        string s;
    }
}
""",
        ["namespace X", "namespace X > class A", "namespace X > class A > Get"],
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
    "a.cpp": (
        """\
template <typename T>
class A : public B {
 public:
  A() : x_(1) {}
  int get() const {
    return x_;
  }
};

namespace n {
void A::go(int x) {
  for (auto& a : b) {
  }
}
}  // namespace
""",
        ["class A", "class A > get", "namespace n", "A::go"],
    ),
    "a.rb": (
        """\
module M
  class A < B
    # doc
    def x(a)
      1
    end

    def self.y?
    end
  end
end
""",
        [
            "module M",
            "module M > class A",
            "module M > class A > def x",
            "module M > class A > def self.y?",
        ],
    ),
    "a.php": (
        """\
<?php
namespace A;

/**
 * Doc
 */
final class A
{
    public function get(int $x): int
    {
        return 1;
    }
}
function b() {}
""",
        ["namespace A", "class A", "class A > function get", "function b"],
    ),
    "a.sh": (
        """\
#!/bin/sh
set -e

# doc
foo() {
  echo
}

function bar {
  cat <<EOF
x
EOF
}
foo
""",
        ["foo", "function bar"],
    ),
    "a.kt": (
        """\
data class A(val x: Int)

fun String.b(x: Int): Int {
    return 1
}
object O {
    private fun c() = 1
}
""",
        ["class A", "fun String.b", "object O", "object O > fun c"],
    ),
    "a.sql": (
        """\
-- doc
CREATE TABLE IF NOT EXISTS foo (
  id int
);

create or replace function bar() returns int as $$
begin
end;
$$;
""",
        ["CREATE TABLE IF NOT EXISTS foo", "create or replace function bar"],
    ),
    "a.yaml": (
        """\
name: x
on:
  push: y
jobs:
  a: b
""",
        ["name", "on", "jobs"],
    ),
    "a.toml": (
        """\
x = 1

[project]
name = "a"

[[tool.x]]
y = 1
""",
        ["[project]", "[[tool.x]]"],
    ),
    "Makefile": (
        """\
X := 1
all: a b
	cc

clean:
	rm
""",
        ["all", "clean"],
    ),
    "a.swift": (
        """\
@objc
public class A: B {
    func go(_ a: Int) -> Int {
        return 1
    }
    init(x: Int) {
    }
}
""",
        ["class A", "class A > func go"],
    ),
    "a.lua": (
        """\
local function a(x)
  return 1
end

function M.b()
end
M.c = function()
end
""",
        ["function a", "function M.b", "M.c"],
    ),
    "a.pl": (
        """\
package A;
use strict;

sub foo {
  1;
}

=head1 X

sub bar { 2 }
""",
        ["package A", "sub foo", "sub bar"],
    ),
    "a.clj": (
        """\
(ns a.b)

(defn foo [x]
  (bar x))

(def x 1)
""",
        ["ns a.b", "defn foo", "def x"],
    ),
    "a.ex": (
        """\
defmodule A do
  @doc "x"
  def foo(a) do
    1
  end

  defp bar, do: 2
end
""",
        ["defmodule A", "defmodule A > def foo", "defmodule A > defp bar"],
    ),
    "a.hs": (
        """\
module A where

-- | doc
foo :: Int -> Int
foo x = 1

data B = C
""",
        ["module A", "foo", "data B"],
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
}


def paths(document: ParsedDocument) -> list[str]:
    """The path of each definition, as a chunk of its own would have it."""
    chunks = chunk_document("d", document, ChunkSettings(1, 0, 10_000))
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
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(400, 0, 600))
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.headings == ("class A", ", ".join(re.findall(r"def f\d", chunk.content)))


@pytest.mark.parametrize("size", [150, 400])
def test_passages_end_at_definitions(size: int):
    text = "".join(f"def f{n}():\n    a = {n}\n\n    return a + {n}\n\n\n" for n in range(60))
    chunks = chunk_document("d", read_document(text, "a.py"), ChunkSettings(size, 0, 600))
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
