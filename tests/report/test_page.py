"""The page is one file, shows what users wrote as text, and keeps to rules of accessibility."""

import colorsys
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from slts.report import collect, page, render, write_report
from tests.report.conftest import NASTY

VOID = {"meta", "br", "input", "img", "link", "hr", "col"}


class Outline(HTMLParser):
    """Elements with their attributes and text, and whether all are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def find(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text(page_file):
    return page_file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def nasty_content(nasty):
    options = dict(nasty)
    return collect(options.pop("model"), **options)


def test_page_is_well_formed_and_needs_nothing_else(text):
    outline = Outline(text)
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"link", "img", "iframe", "object", "base", "form"}
    assert all("src" not in attributes for _, attributes in outline.elements)
    # The name of SVG in the script is no address that is asked for.
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text
    policy = next(a["content"] for a in outline.find("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def test_content_comes_back_from_the_page(model, three):
    found = collect(model, three.X_test, three.y_test)
    outline = Outline(render(found))
    embedded, _script = outline.text["script"]
    assert json.loads(embedded) == found


def test_names_are_shown_as_text(nasty_content):
    text = render(nasty_content)
    outline = Outline(text)
    assert len(outline.find("script")) == 2
    assert not outline.find("img")
    assert text.count("<!--") == 0
    assert json.loads(outline.text["script"][0]) == nasty_content
    assert NASTY[0] in outline.text["h1"]
    assert NASTY[1] in outline.text["th"]
    # Slots in names are not filled.
    assert any("{{content}}" in cell for cell in outline.text["th"])


def test_page_has_a_language_a_title_and_headings_in_order(text):
    outline = Outline(text)
    assert outline.find("html") == [{"lang": "en"}]
    assert outline.text["title"] == ["SLTSClassifier: 3 classes, 4 channels"]
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_have_scopes_and_references_lead_somewhere(text):
    outline = Outline(text)
    assert all(a.get("scope") in ("row", "col") for a in outline.find("th"))
    ids = [a["id"] for _, a in outline.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in outline.elements:
        for name in ("aria-labelledby", "for"):
            assert attributes.get(name, ids[0]) in ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
    scrolled = [a for _, a in outline.elements if a.get("class") == "wide"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolled)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def mixed(colour, share, ground):
    parts = [
        round(share * int(colour[k : k + 2], 16) + (1 - share) * int(ground[k : k + 2], 16))
        for k in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


def palette():
    style = files("slts.report").joinpath("page.css").read_text(encoding="utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    assert len(found) > 15
    return [{name: pair[k] for name, *pair in found} for k in (0, 1)]


TEXT = ["ink", "soft", "link", "for", "against", "channel-0", "channel-1", "channel-2"]
TEXT += [f"class-{k}" for k in range(8)]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast_is_aa(theme):
    colours = palette()[theme]
    for ground in ("paper", "card"):
        for name in TEXT:
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        # Borders of buttons and axes; rings of landmarks and lines without a colour of their own.
        for name in ("strong", "quiet"):
            assert contrast(colours[name], colours[ground]) >= 3.0, (name, ground)
    # Inverted: the chosen button and list entry.
    assert contrast(colours["paper"], colours["ink"]) >= 7
    # Numbers on the darkest tint of a table.
    for tint in ("for", "against"):
        assert contrast(colours["ink"], mixed(colours[tint], 0.4, colours["card"])) >= 4.5, tint


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_for_and_against_differ_without_red_and_green(theme):
    colours = palette()[theme]
    hues = []
    for name in ("for", "against"):
        red, green, blue = (int(colours[name][k : k + 2], 16) / 255 for k in (1, 3, 5))
        hues.append(360 * colorsys.rgb_to_hsv(red, green, blue)[0])
        # Blue against orange: the blue channel alone tells them apart.
        assert (blue > red) == (name == "for")
    assert 180 < hues[0] < 260
    assert 15 < hues[1] < 45


def test_series_left_out_are_admitted(model, three):
    found = collect(model, three.X_test, three.y_test)
    found["explorer"]["n_given"] = 9000
    found["data"]["lengths"]["high"] = 500
    text = render(found)
    assert "42 of 9,000 series are kept in this file" in text
    assert "Series of more than 120 steps are drawn with 120 points" in text


def test_page_without_data_says_so(model):
    text = render(collect(model))
    assert "No series were given to this report." in text
    assert 'id="explorer"' not in text


def test_many_classes_list_pairs_instead_of_a_matrix(model, three):
    found = collect(model, three.X_test, three.y_test)
    found["confusion"]["rows"] = [*found["confusion"]["rows"], *map(str, range(30))]
    assert "pairs of classes that are confused most often" in render(found)


def test_classes_left_out_of_the_balance_are_counted(model, three):
    found = collect(model, three.X_test, three.y_test)
    assert "more</p>" not in render(found)
    found["data"]["labels"] = [f"class {k}" for k in range(1234)]
    for key in ("counts", "right", "answered"):
        found["data"][key] = [1] * 1234
    assert "and 1,134 more</p>" in render(found)


def test_file_appears_whole_or_not_at_all(model, three, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    assert write_report(model, str(target)) == target
    before = target.read_bytes()

    def fail(content):
        raise RuntimeError("no")

    monkeypatch.setattr(page, "render", fail)
    with pytest.raises(RuntimeError, match="no"):
        write_report(model, target, X=three.X_test)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_japanese_vowels_with_all_their_series_take_four_megabytes(vowels_file):
    text = vowels_file.read_text(encoding="utf-8")
    explorer = json.loads(Outline(text).text["script"][0])["explorer"]
    assert len(explorer["entries"]) == 370
    assert all(len(entry["classes"]) == 9 for entry in explorer["entries"])
    assert len(text.encode()) < 4_000_000
