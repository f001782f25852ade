"""The page in a real browser: it opens, reacts, fits on a phone and on paper."""

import re

import pytest

import slts
from slts.report import write_report
from tests.report.conftest import NASTY

# Elements that stick out of the window without standing in something that scrolls.
STICKING_OUT = """() => {
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
WITHOUT_A_NAME = """() => {
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
    assert page.locator("#scatter .dot").count() == 42
    assert page.locator("#list [role=option]").count() == 42
    assert page.evaluate(WITHOUT_A_NAME) == []
    # `open_page` asserts at the end that nothing was logged and nothing else was asked for.


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
    # The event of the scrolling, which hides the hint, may come late.
    page.wait_for_timeout(300)
    box = dot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#tip svg").is_visible()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    name = page.locator('#list [aria-selected="true"]').evaluate("node => node.firstChild.data")
    assert page.locator("#which").inner_text() == f"Series {name}" != before
    assert f"Series {name}" in page.locator("#picked").inner_text()


def test_clicking_a_list_entry_selects_it(open_page, page_file):
    page = open_page(page_file)
    assert selected(page) == 0
    page.locator('#list [data-entry="5"]').click()
    assert selected(page) == 5
    assert page.locator("#alignment svg").count() == 1


def test_keys_step_through_the_series(open_page, page_file):
    page = open_page(page_file)
    # Keys belong to the reader, and to assistive programs, until the explorer has the focus.
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
    for key, expected in (("ArrowDown", 2), ("ArrowUp", 1), ("End", 41), ("j", 41), ("Home", 0)):
        page.keyboard.press(key)
        assert selected(page) == expected, key
    page.locator("#next").click()
    assert selected(page) == 1
    page.locator("#previous").click()
    assert selected(page) == 0
    # Letters typed into the search are letters.
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
    assert 0 < len(found) < 42
    assert all("north" in text for text in found)
    page.locator("#search").fill("no such series")
    assert "No series is called that" in page.locator("#list").inner_text()
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
    assert page.locator("#h-map").inner_text().endswith(f"spoke for {name}")
    page.locator("#scores [aria-checked=true]").press("ArrowDown")
    focus = page.evaluate("document.activeElement.getAttribute('aria-checked')")
    assert focus == "true"


def test_cells_add_up_to_the_score(open_page, page_file):
    page = open_page(page_file)
    words = page.locator("#map-words").inner_text().replace("\N{MINUS SIGN}", "-")
    total = float(re.search(r"add up to (-?[\d.e-]+\d)", words).group(1))
    score = page.evaluate(
        """() => {
          const { explorer } = JSON.parse(document.getElementById("content").textContent);
          const [entry] = explorer.entries;
          return entry.scores[entry.predicted];
        }"""
    )
    assert total == pytest.approx(score, rel=1e-2)


def test_choosing_a_landmark_changes_the_alignment(open_page, page_file):
    page = open_page(page_file)
    before = page.locator("#alignment").inner_html()
    page.locator("#chips button").nth(1).click()
    assert page.locator("#alignment").inner_html() != before
    assert page.locator("#alignment .tie").count() > 5


def test_nothing_sticks_out_on_a_phone(open_page, page_file, nasty, tmp_path):
    options = dict(nasty)
    wild = write_report(options.pop("model"), tmp_path / "wild.html", **options)
    for file in (page_file, wild):
        page = open_page(file, width=390, height=844)
        assert page.evaluate(STICKING_OUT) == [0]
        page.locator("summary").first.click()
        assert page.evaluate(STICKING_OUT) == [0]


def test_pictures_follow_the_window(open_page, page_file):
    page = open_page(page_file)
    wide = page.locator("#scatter svg").get_attribute("width")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)
    assert float(page.locator("#scatter svg").get_attribute("width")) < float(wide)
    assert page.evaluate(STICKING_OUT) == [0]


def ground(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_and_light_follow_the_system_and_the_button(open_page, page_file):
    light, dark = open_page(page_file), open_page(page_file, color_scheme="dark")
    assert ground(light) == "rgb(252, 251, 248)"
    assert ground(dark) == "rgb(20, 22, 26)"
    for page, other in ((light, "dark"), (dark, "light")):
        button = page.locator("#theme")
        # Its name says what it does; a state besides would say the contrary of it.
        assert button.get_attribute("aria-label") == f"Switch to {other} colours"
        assert button.get_attribute("aria-pressed") is None
        button.click()
    assert ground(light) == "rgb(20, 22, 26)"
    assert ground(dark) == "rgb(252, 251, 248)"


def test_paper_is_white_and_without_controls(open_page, page_file, tmp_path):
    page = open_page(page_file, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert ground(page) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#list").is_visible()
    assert page.locator("#map svg").is_visible()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000


def test_without_javascript_words_and_tables_remain(open_page, page_file):
    page = open_page(page_file, java_script_enabled=False)
    for text in ("Right and wrong", "With confidence 95%"):
        assert page.get_by_text(text).first.is_visible()
    assert page.locator("#explorer noscript p").is_visible()
    for anchor in ("errors", "looks", "data", "card"):
        assert page.locator(f"#{anchor} table").first.is_visible()
    assert not page.locator("#list").is_visible()
    assert not page.locator("#theme").is_visible()


def test_all_controls_are_reached_by_the_tab_key_and_show_it(open_page, page_file):
    page = open_page(page_file)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        identity, outline = page.evaluate(FOCUS)
        assert outline != "none", identity
        reached.add(identity)
        if identity == "chips":
            break
    wanted = {
        "#main",
        "#explorer",
        "theme",
        "search",
        "list",
        "previous",
        "next",
        "scores",
        "chips",
    }
    assert wanted <= reached


def test_names_are_never_run(open_page, nasty, tmp_path):
    options = dict(nasty)
    file = write_report(options.pop("model"), tmp_path / "wild.html", **options)
    page = open_page(file)
    page.locator('#list [data-entry="3"]').click()
    page.locator("#scatter svg").hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert NASTY[0] in page.locator("h1").inner_text()
    assert NASTY[1] in page.locator("#scores").inner_text()


@pytest.mark.parametrize(
    "kind", ["OneNNClassifier", "SimilaritySVC", "LocalSLTSClassifier", "nothing given", "two"]
)
def test_other_models_open_too(kind, open_page, model, three, two, tmp_path):
    target = tmp_path / "report.html"
    if kind == "nothing given":
        write_report(model, target)
    elif kind == "two":
        fitted = slts.SLTSClassifier(20, random_state=0).fit(two.X, two.y)
        write_report(fitted, target, X=two.X_test)
    else:
        fitted = getattr(slts, kind)().fit(three.X, three.y)
        write_report(fitted, target, X=three.X_test, y=three.y_test)
    page = open_page(target, width=390, height=844)
    assert page.evaluate(STICKING_OUT) == [0]
    if kind != "nothing given":
        page.locator("#list").press("j")
        assert selected(page) == 1
        page.locator("#scores button").first.click()
        assert page.locator("#alignment .tie").count() > 5


def test_japanese_vowels_are_all_in_the_explorer(open_page, vowels_file):
    page = open_page(vowels_file)
    assert page.locator("#list [role=option]").count() == 370
