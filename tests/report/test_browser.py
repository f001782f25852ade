"""The page in a browser: it opens, reacts, and fits on a phone and on paper."""

import copy
import re

import numpy as np
import pytest

from slts.features.summary import snippets_to_show
from slts.report import render, write_report
from slts.report.sections import resource
from slts.series import SeriesBatch
from tests.report.conftest import DATA, NASTY, fitted

pytestmark = pytest.mark.slow

# Elements outside the window that are not in a scrolling element.
OVERFLOWING = """() => {
  const scrolls = (node) => node && node !== document.documentElement &&
    (["auto", "scroll", "hidden"].includes(getComputedStyle(node).overflowX) ||
      scrolls(node.parentElement));
  const out = [...document.querySelectorAll("body *")].filter((node) => {
    const box = node.getBoundingClientRect();
    const outside = box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
    return outside && !node.closest(".skip") && !scrolls(node.parentElement);
  });
  const wide = document.documentElement.scrollWidth - innerWidth;
  return [wide, ...out.map((node) => node.outerHTML.slice(0, 120))];
}"""
UNNAMED = """() => {
  const named = (node) => node.getAttribute("aria-label") || node.textContent.trim() ||
    (node.id && document.querySelector(`label[for="${node.id}"]`));
  const asked = [...document.querySelectorAll("a, button, input, [role=radio], [role=option]")];
  const drawn = [...document.querySelectorAll("main svg:not([role][aria-label])")];
  const found = [...asked.filter((node) => !named(node)), ...drawn];
  return found.map((node) => node.outerHTML.slice(0, 120));
}"""
FOCUS = """() => {
  const node = document.activeElement;
  const group = node.closest("[role=radiogroup]");
  const identity = node.id || (group ? group.id : node.getAttribute("href"));
  return [identity, getComputedStyle(node).outlineStyle];
}"""


def selected(page):
    return int(page.locator('#list [aria-selected="true"]').get_attribute("data-entry"))


def test_it_opens_from_a_file_without_errors_or_requests(open_page, page_file):
    page = open_page(page_file)
    assert page.title() == "SLTSClassifier: 3 classes, 4 channels"
    assert page.locator("#metrics svg").count() == 3
    assert page.locator("#gallery figure svg").count() > 3
    assert page.locator("#scatter .dot").count() == 30
    assert page.locator("#list [role=option]").count() == 30
    assert page.evaluate(UNNAMED) == []
    words = page.locator("#verdict").inner_text()
    assert re.search(r"Set at 95% confidence: .+\.$", words)
    # `open_page` asserts that nothing was logged and nothing else was requested.


def test_clicking_a_point_selects_its_series(open_page, page_file):
    page = open_page(page_file)
    before = page.locator("#which").inner_text()
    dot = page.locator('#scatter [data-entry="7"]')
    dot.scroll_into_view_if_needed()
    # The scroll event hides the tooltip and can be late.
    page.wait_for_timeout(300)
    box = dot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#tip svg").is_visible()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    name = page.locator('#list [aria-selected="true"]').evaluate("node => node.firstChild.data")
    assert page.locator("#which").inner_text() == name.capitalize() != before
    assert name.capitalize() in page.locator("#picked").inner_text()


def test_clicking_an_entry_or_a_landmark_changes_the_alignment(open_page, page_file):
    page = open_page(page_file)
    assert selected(page) == 0
    page.locator('#list [data-entry="5"]').click()
    assert selected(page) == 5
    assert page.locator("#alignment svg").count() == 1
    before = page.locator("#alignment").inner_html()
    page.locator("#chips button").nth(1).click()
    assert page.locator("#alignment").inner_html() != before
    assert page.locator("#alignment .tie").count() > 5


def test_keys_step_through_the_series(open_page, page_file):
    page = open_page(page_file)
    # Without the focus on the explorer, keys belong to the browser and to screen readers.
    for key in ("j", "ArrowRight"):
        page.keyboard.press(key)
        assert selected(page) == 0, key
    page.locator("#next").focus()
    for key, expected in (("j", 1), ("j", 2), ("k", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        assert selected(page) == expected, key
    page.locator("#list").focus()
    for key, expected in (("ArrowDown", 2), ("ArrowUp", 1), ("End", 29), ("j", 29), ("Home", 0)):
        page.keyboard.press(key)
        assert selected(page) == expected, key
    page.locator("#next").click()
    assert selected(page) == 1
    page.locator("#previous").click()
    assert selected(page) == 0
    # In the search field, letters are text.
    name = page.locator("#which").inner_text()
    page.locator("#search").press("j")
    assert page.locator("#which").inner_text() == name


def test_search_narrows_the_list(open_page, page_file):
    page = open_page(page_file)
    page.locator("#search").fill("north")
    found = page.locator("#list [role=option]").all_inner_texts()
    assert 0 < len(found) < 30
    assert all("north" in text for text in found)
    page.locator("#search").fill("no such series")
    assert "No series has this name or class" in page.locator("#list").inner_text()
    assert page.locator("#list").get_attribute("aria-activedescendant") is None
    page.locator("#search").fill("")
    assert page.locator("#list").get_attribute("aria-activedescendant") == "entry-0"


def test_choosing_a_class_changes_map_and_landmarks(open_page, page_file):
    page = open_page(page_file)
    chosen = page.locator("#scores [aria-checked=true]").get_attribute("data-value")
    before = page.locator("#map").inner_html()
    other = page.locator("#scores [aria-checked=false]").first
    name = other.locator(".name").inner_text().split(" ")[0]
    other.click()
    assert page.locator("#scores [aria-checked=true]").get_attribute("data-value") != chosen
    assert page.locator("#map").inner_html() != before
    assert page.locator("#h-map").inner_text().endswith(f"channels to {name}")
    page.locator("#scores [aria-checked=true]").press("ArrowDown")
    focus = page.evaluate("document.activeElement.getAttribute('aria-checked')")
    assert focus == "true"


SCORE = """() => {
  const { explorer } = JSON.parse(document.getElementById("content").textContent);
  const [entry] = explorer.entries;
  return entry.scores[entry.predicted];
}"""


@pytest.mark.parametrize("kind", ["page_file", "local_file"])
def test_the_shown_numbers_add_up_to_the_decision_value(open_page, kind, request):
    page = open_page(request.getfixturevalue(kind))
    tables = page.locator("#ledger table")
    assert tables.count() == 2
    for table in tables.all():
        texts = table.locator("td").all_inner_texts()
        numbers = [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]
        assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=1e-9)
        assert numbers[-1] == pytest.approx(page.evaluate(SCORE), abs=0.006)
    names = page.locator("#ledger th").all_inner_texts()
    assert names[:3] == ["all steps and channels", "offset", "decision value"]
    assert {"all other landmarks", "intercept"} <= set(names)
    assert ("all snippets" in names) == (kind == "local_file")


def test_names_and_times_of_the_user_are_shown(open_page, recorded_file):
    page = open_page(recorded_file)
    assert re.fullmatch(r"recording 5\d\d", page.locator("#which").inner_text())
    assert ", 10.00 to 12." in page.locator("#verdict").inner_text()
    # Ticks are round numbers at their steps: 0.02 s each, in 120 bins.
    ticks = page.locator("#map svg .tick").all_text_contents()
    assert ticks == [f"{10 + k / 2:.1f}" for k in range(6)][: len(ticks)]
    assert len(ticks) >= 5
    chips = page.locator("#chips button").all_inner_texts()
    assert all(re.match(r"(run|sit|walk), recording \d+: [+\N{MINUS SIGN}]", c) for c in chips)
    assert "time 10.00 to 12." in page.locator("#alignment svg").text_content()
    captions = page.locator("#gallery figcaption").all_inner_texts()
    assert all(re.search(r"\nrecording \d+$", text) for text in captions)


def test_missing_values_interrupt_lines_and_channels_keep_their_colours(
    open_page, with_gaps, write
):
    page = open_page(write(**with_gaps))
    lines = page.locator("#alignment .lead, #gallery .lead").evaluate_all(
        """paths => paths.map((path) =>
          [path.style.stroke, path.getAttribute("d").split("M").length])"""
    )
    # Channel 1 has two runs, and is drawn in its own colour wherever it is.
    runs = {colour: {n - 1 for of, n in lines if of == colour} for colour, _ in lines}
    assert runs.pop("var(--channel-1)") == {2}
    assert set(runs) <= {f"var(--channel-{k})" for k in (0, 2, 3)}
    assert all(counts == {1} for counts in runs.values())
    names = page.locator("#gallery .ink").evaluate_all(
        "names => names.map((name) => [name.textContent, name.style.color])"
    )
    assert {(f"sensor {k}", f"var(--channel-{k})") for k in range(4)} >= set(map(tuple, names))


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("s", ", 10:00:10.000 to 10:00:12."),
        ("h", ", 20:00:00 to 22:"),
        ("D", ", 2024-03-11 10:00 to 2024-03-14 "),
        ("W", ", 2024-05-10 to 2024-05-30."),
    ],
)
def test_dates_are_as_exact_as_their_axis(open_page, recorded, tmp_path, unit, expected):
    X = recorded["X"]
    start = np.datetime64("2024-03-01T10:00", "ns")
    unit = np.timedelta64(1, unit) / np.timedelta64(1, "ns")
    dates = start + (X.times * unit).astype("timedelta64[ns]")
    X = SeriesBatch(X.values, X.offsets, X.channel_names, times=dates)
    page = open_page(write_report(recorded["model"], tmp_path / "report.html", X=X[:2]))
    assert expected in page.locator("#verdict").inner_text()


def test_metrics_name_their_channels_and_share_a_scale(open_page, local_file):
    page = open_page(local_file)
    names = [f"sensor {k}" for k in range(4)] + ["constant"]
    for svg in page.locator("#metrics svg").all():
        texts = svg.locator("text").all_text_contents()
        assert sorted(texts) == sorted(2 * names)
    low, high = page.locator("#metrics .scale").inner_text().split()
    assert low == f"\N{MINUS SIGN}{high}"
    # The largest weight is opaque in one matrix only.
    shades = page.locator("#metrics svg").evaluate_all(
        """svgs => svgs.map((svg) => Math.max(...[...svg.querySelectorAll(".cell")]
          .map((cell) => Number(cell.getAttribute("fill-opacity")))))"""
    )
    assert max(shades) == 1
    assert min(shades) < 1


WIDTHS = [390, 768, 1920]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_its_window(open_page, page_file, recorded_file, nasty_file, width):
    for file in (page_file, recorded_file, nasty_file):
        page = open_page(file, width=width)
        assert page.evaluate(OVERFLOWING) == [0]
        # Links of the navigation are all visible: it wraps.
        right = page.locator("nav").bounding_box()
        for link in page.locator("nav a").all():
            box = link.bounding_box()
            assert box["x"] + box["width"] <= right["x"] + right["width"] + 1


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (950, 1000, "950 to 1000"),
        (0.001, 0.012, "0.001 to 0.012"),
        (-0.4, 0.31, "\N{MINUS SIGN}0.4 to 0.31"),
        (1e7, 3.5e7, "1e7 to 3.5e7"),
        (1e-5, 3e-5, "1e-5 to 3e-5"),
        (101325.2, 101325.9, "101325.2 to 101325.9"),
        (101325, 101325, "101325"),
        (0, 0, "0"),
    ],
)
def test_both_ends_of_a_range_differ(open_page, page_file, low, high, text):
    source = resource("page.js")
    begin, end = (source.index(f"// ---- {words} ----") for words in ("numbers", "words"))
    code = f"([low, high]) => {{ {source[begin:end]} return range(low, high); }}"
    assert open_page(page_file).evaluate(code, [low, high]) == text


def test_a_table_that_is_cut_off_says_so(open_page, content, tmp_path):
    content = copy.deepcopy(content)
    names = [f"class number {k}" for k in range(18)]
    content["labels"] = content["model"]["classes"] = names
    content["confusion"]["counts"] = [[k] * 18 for k in range(18)]
    target = tmp_path / "report.html"
    target.write_text(render(content), encoding="utf-8")
    matrix = open_page(target, width=390, height=844).get_by_label("Confusion matrix")
    cue = matrix.locator("xpath=following-sibling::p")
    assert cue.inner_text() == "Scroll sideways to see all columns."
    wide = open_page(target, width=1920).get_by_label("Provenance")
    assert wide.locator("xpath=following-sibling::p").is_hidden()


def test_snippets_are_drawn_with_examples(open_page, local_file):
    page = open_page(local_file)
    figures = page.locator("#snippet-gallery figure")
    assert figures.count() == 3 * 6
    assert page.evaluate(UNNAMED) == []
    for k in (0, 3):
        snippet, example = figures.nth(k).locator("svg").all()
        kind = "pro" if k == 0 else "con"
        n_channels = figures.nth(k).locator(".row-name").count()
        assert snippet.locator(f".trace.{kind}").count() == n_channels
        assert example.locator(f".trace.{kind}").count() == n_channels
        assert example.locator(".trace.dim").count() == n_channels
        assert example.locator(".cell").count() > 0
        assert "training series" in figures.nth(k).locator("figcaption").first.inner_text()
    model, X = fitted("local"), DATA["three"].X_test
    shown = [one for sides in snippets_to_show(model, X, 3) for side in sides for one in side]
    for figure, one in zip(figures.all(), shown, strict=True):
        how = model.snippets_.compared(one.snippet)
        tags = figure.locator(".tag").all_inner_texts()
        assert tags == ([] if how == "values" else [how])


def test_the_explorer_shows_the_strongest_snippets_of_the_class(open_page, local_file):
    page = open_page(local_file)
    assert page.locator("#occurring figure").count() == 3
    values = [text.split(",")[0] for text in page.locator("#occurring strong").all_inner_texts()]
    sizes = [abs(float(text.replace("\N{MINUS SIGN}", "-"))) for text in values]
    assert sizes == sorted(sizes, reverse=True)
    before = page.locator("#occurring").inner_text()
    page.locator("#scores [aria-checked=false]").first.click()
    assert page.locator("#occurring").inner_text() != before


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light_follow_the_system(open_page, page_file):
    light, dark = open_page(page_file), open_page(page_file, color_scheme="dark")
    assert background(light) == "rgb(252, 251, 248)"
    assert background(dark) == "rgb(20, 22, 26)"


def test_paper_is_white_and_without_controls(open_page, page_file, tmp_path):
    page = open_page(page_file, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert background(page) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#list").is_visible()
    assert page.locator("#map svg").is_visible()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000


def test_text_and_tables_need_no_javascript(open_page, page_file):
    page = open_page(page_file, java_script_enabled=False)
    for text in ("Rows: true class.", "With confidence 95%"):
        assert page.get_by_text(text).first.is_visible()
    assert page.locator("#explorer noscript p").is_visible()
    for anchor in ("predictions", "importance", "card"):
        assert page.locator(f"#{anchor} table").first.is_visible()
    assert not page.locator("#list").is_visible()


def test_the_tab_key_reaches_all_controls_and_shows_the_focus(open_page, page_file):
    page = open_page(page_file)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        identity, outline = page.evaluate(FOCUS)
        assert outline != "none", identity
        reached.add(identity)
        if identity == "chips":
            break
    controls = {"search", "list", "previous", "next", "scores", "chips"}
    assert {"#main", "#explorer"} | controls <= reached


def test_names_are_never_run(open_page, nasty_file):
    page = open_page(nasty_file)
    page.locator('#list [data-entry="3"]').click()
    page.locator("#scatter svg").hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert NASTY[2] in page.locator("#snippet-gallery").inner_text()
    assert NASTY[0] in page.locator("h1").inner_text()
    assert NASTY[1] in page.locator("#scores").inner_text()


@pytest.mark.parametrize(
    ("kind", "data", "given"),
    [
        ("1nn", "three", "labelled"),
        ("svc", "three", "labelled"),
        ("local", "three", "labelled"),
        ("pipeline", "three", "labelled"),
        ("slts", "three", "nothing"),
        ("slts", "two", "unlabelled"),
        ("local", "two", "unlabelled"),
        ("local", "three", "nothing"),
    ],
)
def test_other_reports_work_too(kind, data, given, open_page, tmp_path):
    X = None if given == "nothing" else DATA[data].X_test[:12]
    y = DATA[data].y_test[:12] if given == "labelled" else None
    target = write_report(fitted(kind, data), tmp_path / "report.html", X=X, y=y)
    page = open_page(target, width=390, height=844)
    assert page.evaluate(OVERFLOWING) == [0]
    if given == "nothing":
        return
    page.locator("#list").press("j")
    assert selected(page) == 1
    page.locator("#scores button").first.click()
    assert page.locator("#alignment .tie").count() > 5
    words = page.locator("#alignment-words").inner_text()
    assert ("in the feature map “landmarks”" in words) == (kind == "local")
