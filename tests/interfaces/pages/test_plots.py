"""The SVG plots: what they draw, and that no name is markup."""

import re
from xml.etree import ElementTree

from rolebundle.interfaces.pages.plots import Bar, Mark, bar_plot, gain_plot, histogram

HOSTILE = '"><script>alert(1)</script>\u202e'


def widths(svg: str, css_class: str) -> list[float]:
    return [float(w) for w in re.findall(rf'width="([\d.]+)"[^>]* class="{css_class}"', svg)]


def test_bars_are_as_long_as_their_values() -> None:
    plot = bar_plot([Bar("a", 0.2, "20%"), Bar("b", -0.1, "−10%", "lost")], "shares")
    (positive,), (negative,) = widths(plot, "plain"), widths(plot, "lost")
    assert abs(positive - 2 * negative) < 0.1
    assert "20%" in plot and 'aria-label="shares"' in plot


def test_a_plot_of_nothing_is_empty() -> None:
    for plot in (bar_plot([], "none"), gain_plot([]), histogram([], "none", "ms")):
        assert "NaN" not in plot and not any(widths(plot, "main"))


def test_each_value_is_in_one_bar_of_the_histogram() -> None:
    plot = histogram([0.0, 5.0, 10.0], "times", "ms", [Mark("p50", 5.0)])
    assert sum(int(count) for count in re.findall(r"ms: (\d+)</title>", plot)) == 3
    assert "p50 5.0" in plot


def test_a_name_is_no_markup_and_hides_nothing() -> None:
    plots = (
        bar_plot([Bar(HOSTILE, 1.0, HOSTILE)], HOSTILE),
        gain_plot([(HOSTILE, 1.0)]),
        histogram([1.0], HOSTILE, HOSTILE, [Mark(HOSTILE, 1.0)]),
    )
    for plot in plots:
        elements = {element.tag for element in ElementTree.fromstring(plot).iter()}
        assert elements <= {"svg", "rect", "text", "line", "title"}
        assert "\u202e" not in plot and "⟦U+202E⟧" in plot
        assert "style=" not in plot
