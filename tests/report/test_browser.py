"""The page in a browser: it opens, reacts, and fits on a phone and on paper."""

import re

import pytest

from slts.report import write_report
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
    assert page.locator("#maps svg").count() == 3
    assert page.locator("#gallery figure svg").count() > 3
    assert page.locator("#scatter .dot").count() == 30
    assert page.locator("#list [role=option]").count() == 30
    assert page.evaluate(UNNAMED) == []
    # `open_page` asserts that nothing was logged and nothing else was requested.


def test_policy_forbids_other_scripts(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.body.append(script);
    }""")
    assert page.evaluate("window.hacked") is None
    page.close()


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
    assert page.locator("#which").inner_text() == f"Series {name}" != before
    assert f"Series {name}" in page.locator("#picked").inner_text()


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
    page.locator("#theme").focus()
    page.keyboard.press("j")
    assert selected(page) == 0
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


def test_arrows_walk_through_the_scatter(open_page, page_file):
    page = open_page(page_file)
    page.locator("#scatter svg").focus()
    page.keyboard.press("ArrowRight")
    first = selected(page)
    page.keyboard.press("ArrowRight")
    assert selected(page) != first


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


def test_cells_sum_to_the_score(open_page, page_file):
    page = open_page(page_file)
    words = page.locator("#map-words").inner_text().replace("\N{MINUS SIGN}", "-")
    total = float(re.search(r"sum to (-?[\d.e-]+\d)", words).group(1))
    score = page.evaluate(
        """() => {
          const { explorer } = JSON.parse(document.getElementById("content").textContent);
          const [entry] = explorer.entries;
          return entry.scores[entry.predicted];
        }"""
    )
    assert total == pytest.approx(score, rel=1e-2)


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
    tags = page.locator("#snippet-gallery .tag").all_inner_texts()
    assert set(tags) <= {"shape only"}


def at_step(page):
    words = page.locator("#occurring-words").inner_text()
    return int(re.match(r"Step (\d+): \d+ snippets occur", words).group(1))


def test_pointing_at_a_step_shows_the_snippets_there(open_page, local_file):
    page = open_page(local_file)
    picture = page.locator("#occurring svg")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    steps = page.locator("#occurring rect.for, #occurring rect.against").count()
    seen = set()
    for step in (0, steps - 1, steps // 2):
        page.mouse.move(box["x"] + box["width"] * (step + 0.5) / steps, box["y"] + 40)
        assert at_step(page) == step
        assert page.locator("#at-step figure").count() == 3
        assert page.locator("#occurring .window").count() == 3
        seen.add(page.locator("#at-step").inner_text())
    assert len(seen) == 3
    # The largest value comes first, and the sums are those of the data.
    values = page.locator("#at-step strong").all_inner_texts()
    sizes = [abs(float(text.replace("\N{MINUS SIGN}", "-"))) for text in values]
    assert sizes == sorted(sizes, reverse=True)
    # The map shows the same steps.
    cells = page.locator("#map svg .frame").bounding_box()
    page.mouse.move(cells["x"] + cells["width"] * 1.5 / steps, cells["y"] + 5)
    assert at_step(page) == 1


def test_keys_walk_through_the_steps(open_page, local_file):
    page = open_page(local_file)
    series = page.locator("#which").inner_text()
    page.locator("#occurring svg").focus()
    for _ in range(40):
        page.keyboard.press("ArrowLeft")
    assert at_step(page) == 0
    page.keyboard.press("ArrowRight")
    assert at_step(page) == 1
    assert page.locator("#which").inner_text() == series


def test_choosing_a_class_changes_what_snippets_add(open_page, local_file):
    page = open_page(local_file)
    page.locator("#occurring svg").focus()
    page.keyboard.press("ArrowLeft")
    step, before = at_step(page), page.locator("#at-step").inner_text()
    page.locator("#scores [aria-checked=false]").first.click()
    assert at_step(page) == step
    assert page.locator("#at-step").inner_text() != before
    page.locator("#next").click()
    assert page.locator("#at-step figure").count() == 3


def test_nothing_overflows_on_a_phone(open_page, page_file, local_file, nasty_file):
    for file in (page_file, local_file, nasty_file):
        page = open_page(file, width=390, height=844)
        assert page.evaluate(OVERFLOWING) == [0]
        page.locator("summary").first.click()
        assert page.evaluate(OVERFLOWING) == [0]


def test_pictures_are_redrawn_when_the_window_changes(open_page, page_file):
    page = open_page(page_file)
    wide = page.locator("#scatter svg").get_attribute("width")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)
    assert float(page.locator("#scatter svg").get_attribute("width")) < float(wide)
    assert page.evaluate(OVERFLOWING) == [0]


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light_follow_the_system_and_the_button(open_page, page_file):
    light, dark = open_page(page_file), open_page(page_file, color_scheme="dark")
    assert background(light) == "rgb(252, 251, 248)"
    assert background(dark) == "rgb(20, 22, 26)"
    for page, other in ((light, "dark"), (dark, "light")):
        button = page.locator("#theme")
        # The name is the action. A pressed state would contradict it.
        assert button.get_attribute("aria-label") == f"Switch to {other} colours"
        assert button.get_attribute("aria-pressed") is None
        button.click()
    assert background(light) == "rgb(20, 22, 26)"
    assert background(dark) == "rgb(252, 251, 248)"


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
    for text in ("Correct and wrong predictions", "With confidence 95%"):
        assert page.get_by_text(text).first.is_visible()
    assert page.locator("#explorer noscript p").is_visible()
    for anchor in ("errors", "importance", "data", "card"):
        assert page.locator(f"#{anchor} table").first.is_visible()
    assert not page.locator("#list").is_visible()
    assert not page.locator("#theme").is_visible()


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
    controls = {"theme", "search", "list", "previous", "next", "scores", "chips"}
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
    if kind == "pipeline":
        # The model inside is not known, so there is nothing to align with.
        assert page.locator("#alone svg").is_visible()
        assert not page.locator("#h-alignment").is_visible()
        return
    assert page.locator("#alignment .tie").count() > 5
    words = page.locator("#alignment-words").inner_text()
    assert ("in the comparison “values, " in words) == (kind == "local")


def test_the_explorer_shows_the_prediction_set(open_page, page_file):
    page = open_page(page_file)
    words = page.locator("#verdict").inner_text()
    assert re.search(r"Set at 95% confidence: .+\.$", words)
