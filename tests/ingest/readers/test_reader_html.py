import pytest

from rolebundle.errors import DocumentError
from support.reading import read_document


def read(text):
    return read_document(text, "a.html")


def blocks(text):
    return [(b.kind, b.text, b.start_line, b.end_line) for b in read(text).blocks]


def test_structure_and_lines():
    assert blocks(
        "<html><body>\n<h2>A <em>title</em></h2>\n<p\n class=x>two\nlines</p>\nloose\n<b>text</b>\n"
        "<ul><li>one</li>\n<li>two <p>more</p><ul><li>deep</li></ul></li></ul>\n"
        "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr></table>\n"
        "<pre>\nx = 1\n\n  y</pre>\n<dl><dt>term</dt><dd>meaning</dd></dl>\n"
        "<blockquote>said</blockquote></body></html>"
    ) == [
        ("heading", "A title", 2, 2),
        ("paragraph", "two lines", 4, 5),
        ("paragraph", "loose text", 6, 7),
        ("list", "- one\n- two more\n  - deep", 8, 9),
        ("table", "a | b\n1 | 2", 10, 11),
        ("code", "x = 1\n\n  y", 13, 15),
        ("paragraph", "term", 16, 16),
        ("paragraph", "meaning", 16, 16),
        ("paragraph", "said", 17, 17),
    ]


def test_invisible_elements_are_skipped_and_counted():
    document = read(
        "<body><nav>menu</nav><header>head</header><p>kept<script>no()</script> too</p>"
        "<div hidden>no</div><div aria-hidden=true>no</div><p style='DISPLAY : none'>no</p>"
        "<style>no</style><template>no</template><!-- no --><noscript>no</noscript>"
        "<aside>no</aside><footer>no</footer></body>"
    )
    assert [b.text for b in document.blocks] == ["kept too"]
    assert document.notes == ("4 hidden elements left out",)


@pytest.mark.parametrize(
    "main",
    [
        "<main>{}</main>",
        "<div role=main>{}</div>",
        "<article>{}</article>",
        "<div id=content>{}</div>",
        "<div class='x body'>{}</div>",
    ],
)
def test_the_main_part_is_used_if_there_is_one(main):
    page = "<body><div>around</div>" + main.format("<header>H</header><p>text</p>") + "</body>"
    assert [b.text for b in read(page).blocks] == ["H", "text"]


def test_two_articles_are_both_read():
    page = "<body><article>one</article><article>two</article></body>"
    assert [b.text for b in read(page).blocks] == ["one", "two"]


def test_title_language_and_date_come_from_the_head():
    page = (
        "<html lang=de><head><title>\n The\n title</title>"
        "<meta property='article:modified_time' content='2026-03-01T10:00:00Z'>"
        "<meta name=last-modified content='last Tuesday'></head><body>x</body></html>"
    )
    assert read(page).inferred == {
        "title": "The title",
        "language": "de",
        "updated_at": "2026-03-01T10:00:00Z",
    }
    assert read("<h1>Only a heading</h1>").inferred == {"title": "Only a heading"}


def test_line_breaks_in_odd_places_are_counted():
    page = "<body><p>a</p\n><p>b &#10;\n<!-- x\ny --> c<img\nalt=x>d\n</p><p>e</p></body>"
    assert [block[1:] for block in blocks(page)] == [("a", 1, 1), ("b cd", 2, 5), ("e", 6, 6)]


@pytest.mark.slow
def test_lines_beyond_the_limit_of_libxml2_are_correct():
    page = "<body>\n" + "".join(f"<p>line {i}</p>\n" for i in range(2, 80_000)) + "</body>"
    parsed_blocks = read(page).blocks
    assert len(parsed_blocks) == 79_998
    for block in parsed_blocks[::10_000]:
        number = int(block.text.split()[1])
        assert block.start_line <= number <= block.end_line
        assert number > 65_000 or block.start_line == block.end_line


def test_chunks_of_a_long_listing_have_exact_lines():
    page = "<body><pre>" + "\n".join(f"<b>line</b> {i}" for i in range(1, 300)) + "</pre></body>"
    (block,) = read(page).blocks
    assert block.aligned
    assert (block.start_line, block.end_line) == (1, 299)


def test_a_long_list_or_table_is_one_block_per_item():
    items = "".join(f"<li>item {i} {'x' * 40}</li>\n" for i in range(100))
    rows = "".join(f"<tr><td>row {i}</td><td>{'x' * 40}</td></tr>\n" for i in range(100))
    parsed_blocks = read(f"<body><ul>\n{items}</ul>\n<table>\n{rows}</table></body>").blocks
    assert [b.kind for b in parsed_blocks] == ["list"] * 100 + ["table"] * 100
    assert {b.end_line - b.start_line for b in parsed_blocks} == {0}


def test_the_page_is_decoded_by_its_own_charset():
    page = "<meta charset=koi8-r><p>мягких булок</p>".encode("koi8-r")
    assert [b.text for b in read(page).blocks] == ["мягких булок"]


def test_nothing_is_fetched_or_expanded():
    page = (
        '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><body><p>a &x; b</p>'
        '<iframe src="file:///etc/passwd"></iframe></body>'
    )
    assert "root:" not in read(page).blocks[0].text


def test_a_page_that_is_nested_too_deeply_is_an_error():
    with pytest.raises(DocumentError) as caught:
        read("<div>" * 400 + "deep" + "</div>" * 400 + "<p>after</p>")
    assert caught.value.code == "unreadable_html"


def test_a_long_value_and_an_open_quote_are_no_attributes():
    path = "<svg><path d='" + "M 1 2 " * 20_000 + "'></svg>"
    page = f'{path}<p><a href=x">a link</a></p>' + "<p>many words</p>" * 20_000
    assert len(blocks(page)) == 20_001


@pytest.mark.parametrize("page", [b"", b" \n", b"<!--", b"<!-- x -->"])
def test_an_empty_page_has_no_blocks(page):
    assert read(page).blocks == ()


def test_a_single_main_element_is_the_main_part():
    page = "<body><div role=main>around</div><main><p>text</p></main></body>"
    assert [text for _, text, *_ in blocks(page)] == ["text"]


def test_control_characters_of_text_and_style_sheets_are_read():
    page = '<body><p>one&#27;[1m<br>&#27;two</p><p class="&#1;">kept for a model only, four</p>'
    assert blocks(page)[0][1] == "one\x1b[1m \x1btwo"
    for sheet in (".\\1 {display:none}", "[class='\x01']{display:none}"):
        document = read(f"<style>{sheet}</style>{page}")
        assert any(part.is_labelled for part in document.hidden)
