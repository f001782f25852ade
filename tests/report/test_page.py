"""The page is one file, shows text of users as text, and is accessible."""

import copy
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import slts
from slts.report import collect, page, render, write_report
from tests.report.conftest import NASTY, fitted

VOID = {"meta", "br", "input", "img", "link", "hr", "col"}


class Outline(HTMLParser):
    """Elements with attributes and text. All elements must be closed in order."""

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


@pytest.fixture
def changed(content):
    """A copy of the content that a test can change."""
    return copy.deepcopy(content)


def test_page_is_well_formed_and_needs_nothing_else(text):
    outline = Outline(text)
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"link", "img", "iframe", "object", "base", "form"}
    assert all("src" not in attributes for _, attributes in outline.elements)
    # The namespace of SVG is not a request.
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text
    policy = next(a["content"] for a in outline.find("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def test_names_are_shown_as_text(nasty):
    content = collect(**nasty)
    text = render(content)
    outline = Outline(text)
    assert len(outline.find("script")) == 2
    assert not outline.find("img")
    assert text.count("<!--") == 0
    assert json.loads(outline.text["script"][0]) == content
    assert NASTY[0] in outline.text["h1"]
    assert NASTY[1] in outline.text["th"]
    # Slots in names are not replaced.
    assert any("{{content}}" in cell for cell in outline.text["th"])


def test_page_has_a_language_a_title_and_headings_in_order(text):
    outline = Outline(text)
    assert outline.find("html") == [{"lang": "en"}]
    assert outline.text["title"] == ["SLTSClassifier: 3 classes, 4 channels"]
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_headers_have_scopes_and_references_have_targets(text):
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


@pytest.mark.parametrize(
    ("confused", "sentence"),
    [
        ([], "All series were classified correctly."),
        ([1], "One series was misclassified: east was predicted as north."),
        ([2, 1], "Most frequent error: east was predicted as north (2 times)."),
        ([1, 1], "No two classes were confused more than once."),
    ],
)
def test_errors_are_put_in_a_sentence(changed, confused, sentence):
    changed["confusion"]["confused"] = [
        {"truth": "east", "predicted": other, "count": count}
        for other, count in zip(["north", "west"], confused, strict=False)
    ]
    assert sentence in render(changed)


def visible(text):
    """The page without its script and without what it hides."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<(\w+)[^>]*\shidden>.*?</\1>", "", text, flags=re.DOTALL).split())


def lede(text):
    return re.search(r'<p class="lede">(.*?)</p>', visible(text))[1].strip()


def test_the_first_sentence_about_training_data_says_so(model, three):
    seen = lede(render(collect(model, three.X, three.y)))
    words = "48 of 48 series are copies of training series"
    assert seen.startswith(f"<span ><strong>{words}</strong>, so the figures do not show")
    unseen = lede(render(collect(model, three.X_test)))
    assert unseen.startswith("This model distinguishes 3 classes.")
    assert "It was applied to 30 series without labels." in unseen


def test_many_classes_have_a_table_with_one_row_each(changed):
    changed["labels"] = [*changed["labels"], *map(str, range(1231))]
    changed["confusion"]["counts"] = [[1, 0, 0]] * 1234
    text = render(changed)
    assert "Confusion matrix" not in text
    listed = text[text.index('aria-label="Series by class"') :]
    assert '<th scope="row">1230</th>' in listed
    assert listed[: listed.index("</table>")].count("<tr>") == 1 + 1234


def test_the_page_names_what_it_shows_and_what_it_leaves_out(changed, model, three):
    changed["explorer"]["n_series"] = 9000
    changed["explorer"]["lengths"][1] = 500
    one = three.y_test == "north"
    cases = {
        "long": render(changed),
        "model": render(collect(model)),
        "one class": render(collect(model, three.X_test[one], three.y_test[one])),
        "local": render(collect(fitted("local"), three.X_test[:3], three.y_test[:3])),
        "no scale": render(collect(fitted("slts, no probabilities"), three.X_test[:4])),
    }
    for case, words in (
        ("long", "This file contains 30 of 9,000 series"),
        ("long", "Series of more than 120 steps are drawn with 120 points"),
        ("long", "Probabilities: choose a class to explain"),
        ("no scale", "Scores: choose a class to explain"),
        ("model", "This report has no series."),
        ("model", "averaged over the landmarks"),
        ("one class", "no series"),
        ("local", "landmarks (whole training series, aligned with the series) "),
        ("local", "The metrics belong to the feature map &ldquo;landmarks&rdquo;."),
        ("local", "&ldquo;constant&rdquo; is an added channel with the same value at every step."),
        ("local", f"and with {len(fitted('local').snippets_):,} snippets at every step"),
        ("local", '<h2 id="h-snippets">'),
    ):
        assert words in visible(cases[case]), words
    for case, words in (
        ("local", "Series of more than"),
        ("local", "This file contains"),
        ("one class", "feature map"),
        ("model", "series without labels"),
        ("no scale", "Outlined shapes are errors"),
    ):
        assert words not in visible(cases[case]), words
    assert 'id="explorer"' not in cases["model"]
    assert "h-snippets" not in cases["model"]


def test_the_page_says_what_prediction_sets_are(content, changed):
    def section(content):
        inner = render(content).partition('id="sets"')[2].partition("</section>")[0]
        return " ".join(inner.split())

    assert "without a proven guarantee" in section(content)
    assert "every class with a probability above 5%" in section(content)
    assert "No set says that a series is unlike all classes." in section(content)
    assert "of the sets contain the true class.</p>" in section(content)
    assert "differ from those" not in section(content)
    changed["sets"]["covered"] = 0.5
    assert "Only 50.0% of these sets contain the true class." in section(changed)
    changed["sets"]["covered"] = None
    assert "of the sets contain the true class.</p>" not in section(changed)


def test_a_failed_report_does_not_change_the_file(model, three, tmp_path, monkeypatch):
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


@pytest.mark.slow
def test_a_series_takes_ten_kilobytes():
    """The content of every kind: maps, paths and snippets of nine classes."""
    X, y = slts.datasets.load("japanese_vowels", "train")
    X_test, y_test = slts.datasets.load("japanese_vowels", "test")
    model = slts.LocalSLTSClassifier(30, n_snippets=60, random_state=0).fit(X, y)
    some, more = (collect(model, X_test[::step], y_test[::step]) for step in (12, 4))
    counts = [len(content["explorer"]["entries"]) for content in (some, more)]
    assert counts == [31, 93]
    assert all(len(entry["parts"]) == 9 for entry in more["explorer"]["entries"])
    sizes = [len(render(content).encode()) for content in (some, more)]
    assert sizes[1] - sizes[0] < 10_000 * (93 - 31)
    assert sizes[0] < 1_000_000
