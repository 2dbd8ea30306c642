"""The report in a real Chromium, offline: it is pointed at, clicked, typed at and timed."""

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from report.test_report import ESTIMATORS
from sklearn.base import clone

from mercer import KernelPCA
from mercer.report import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")

EVIL = '</script><img src=x onerror="window.harmed = 1">'
DESKTOP = {"viewport": {"width": 1200, "height": 900}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
NAMES = ["height", EVIL, "width", "depth"]
# How many pixels of the plot are of neither black, grey nor white, since points have colors, and
# where the middle one of them is.
COLORED = """() => {
  const plot = document.getElementById("plot");
  const { data, width } = plot.getContext("2d").getImageData(0, 0, plot.width, plot.height);
  const places = [];
  for (let p = 0; p < data.length; p += 4) {
    const [r, g, b] = [data[p], data[p + 1], data[p + 2]];
    if (Math.max(r, g, b) - Math.min(r, g, b) > 40) {
      places.push([(p / 4) % width, Math.floor(p / 4 / width)]);
    }
  }
  return { count: places.length, middle: places[Math.floor(places.length / 2)] };
}"""
PIXELS = """() => {
  const plot = document.getElementById("plot");
  return plot.toDataURL();
}"""
SETTLE = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        # The sandbox needs rights that containers do not have; the page is our own.
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(c, 0.6, (60, 4)) for c in (-2, 0, 2)]).astype(np.float32)


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    # So wide a kernel is nearly linear: walks are smooth.
    model = KernelPCA(4, kernel="rbf", gamma=0.005).fit(rows)
    groups = np.repeat(["low", EVIL, "high"], 60)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(model, rows, path, columns=NAMES, color=groups, title=EVIL)


class Visit:
    """A page that is open, and all that it complained of or asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(5000)
        self.trouble, self.requests = [], []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        self.settle()

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.page.evaluate(SETTLE)

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def find_row(self):
        """Point at one of the points, and read what is said of it."""
        x, y = self.page.evaluate(COLORED)["middle"]
        box = self.page.locator("#plot").bounding_box()
        x, y = box["x"] + x, box["y"] + y
        self.page.mouse.move(x, y)
        # The tooltip stands beside its point, which is the one pointed at.
        tip = self.page.locator("#tooltip").bounding_box()
        assert min(abs(tip["x"] - 16 - x), abs(tip["x"] + tip["width"] + 16 - x)) < 8
        return self.text("#tooltip")


@pytest.fixture
def visit(browser, file):
    made = Visit(browser, file, **DESKTOP)
    yield made
    trouble, requests = made.trouble, [request.url for request in made.requests]
    made.context.close()
    assert trouble == [] and requests == [file.as_uri()]


def number_of(text, name):
    return float(re.search(rf"^{re.escape(name)}\s+(\S+)$", text, re.MULTILINE).group(1))


def test_hovering_shows_the_row(visit, rows):
    text = visit.find_row()
    row = rows[int(re.match(r"row (\d+)", text).group(1))]
    assert_allclose([number_of(text, name) for name in NAMES], row, rtol=1e-5)
    visit.page.mouse.move(2, 2)
    assert visit.page.locator("#tooltip").is_hidden()


def test_clicking_keeps_the_row(visit):
    name = visit.find_row().splitlines()[0]
    visit.page.mouse.down()
    visit.page.mouse.up()
    assert visit.text("#details").startswith(f"Chosen: {name}")
    assert visit.text("#details").count("component") == 4


def test_arrow_keys_move_among_points(visit):
    visit.page.focus("#plot")
    places = []
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]:
        visit.page.keyboard.press(key)
        visit.settle()
        spoken = visit.page.locator("#announce").text_content()
        places.append(float(re.search(r"component 1 (\S+?),", spoken).group(1)))
    assert len(set(places)) == 4 and places == sorted(places)
    visit.page.keyboard.press("Escape")
    visit.settle()
    assert visit.page.locator("#tooltip").is_hidden()
    assert "Hover over a row" in visit.text("#details")


def test_an_outlier_is_found_in_the_scatter(visit):
    before = visit.page.evaluate(PIXELS)
    button = visit.page.locator("#outliers button").nth(2)
    button.focus()
    visit.page.keyboard.press("Enter")
    visit.settle()
    assert visit.text("#details").startswith(f"Chosen: row {button.inner_text()}")
    assert visit.text("#tooltip").startswith(f"row {button.inner_text()}")
    assert visit.page.locator("#outliers tr[aria-current]").count() == 1
    assert button.get_attribute("aria-pressed") == "true"
    assert visit.page.evaluate(PIXELS) != before
    cells = visit.page.locator("#outliers tbody tr").nth(2).locator("td").all_inner_texts()
    assert cells[3] in ("low", EVIL, "high") and len(cells) == 4


def test_a_notebook_shows_it_in_place(browser, rows, tmp_path):
    """In a frame without rights on the page around it, drawn and alive."""
    made = KernelPCA(2, kernel="rbf", gamma=0.01).fit(rows).report(rows, columns=NAMES)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset='utf-8'><body>{made._repr_html_()}</body>")
    context = browser.new_context(offline=True, **DESKTOP)
    page = context.new_page()
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(state="attached", timeout=5000)
    frame.locator("#search").fill("width > 0")
    found = int(np.sum(rows[:, 2] > 0))
    assert frame.locator("#found").inner_text() == f"{found} of 180 rows selected"
    assert trouble == []
    context.close()


def test_the_slider_walks_by_keys(visit):
    visit.page.focus("#walk-step")
    seen = [visit.text("#walk-view")]
    assert visit.text("#walk-place") == "0 standard deviations"
    visit.page.keyboard.press("ArrowRight")
    assert visit.text("#walk-place") == "+0.25 standard deviations"
    seen.append(visit.text("#walk-view"))
    visit.page.keyboard.press("End")
    assert visit.page.locator("#walk-step").get_attribute("aria-valuetext").startswith("+2.5")
    seen.append(visit.text("#walk-view"))
    visit.page.select_option("#walk-component", label="2")
    seen.append(visit.text("#walk-view"))
    assert len(set(seen)) == 4 and all("height" in text for text in seen)


def test_any_components_in_two_or_three_dimensions(visit):
    seen = {visit.page.evaluate(PIXELS)}
    visit.page.select_option("#axis-x", label="component 3")
    visit.settle()
    seen.add(visit.page.evaluate(PIXELS))
    visit.page.select_option("#axis-z", label="component 4")
    visit.settle()
    label = visit.page.locator("#plot").get_attribute("aria-label")
    assert label == "Scatter of 180 rows by component 3, component 2, component 4"
    seen.add(visit.page.evaluate(PIXELS))
    visit.page.focus("#plot")
    visit.page.keyboard.press("Shift+ArrowLeft")
    visit.settle()
    seen.add(visit.page.evaluate(PIXELS))
    box = visit.page.locator("#plot").bounding_box()
    visit.page.mouse.move(box["x"] + 300, box["y"] + 200)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 360, box["y"] + 260, steps=3)
    visit.page.mouse.up()
    visit.settle()
    seen.add(visit.page.evaluate(PIXELS))
    assert len(seen) == 5
    assert visit.text("#details").startswith("Hover over a row"), "a drag must not choose"
    assert visit.find_row().count("component") == 3


def test_zoom_by_wheel_button_and_key_and_back(visit):
    start = visit.page.evaluate(PIXELS)
    box = visit.page.locator("#plot").bounding_box()
    visit.page.mouse.move(box["x"] + 300, box["y"] + 200)
    visit.page.mouse.wheel(0, -300)
    visit.settle()
    visit.page.mouse.move(2, 2)
    assert visit.page.evaluate(PIXELS) == start, "the wheel belongs to the page"
    visit.page.evaluate("scrollTo(0, 0)")
    for act in [
        lambda: visit.page.click("#zoom-in"),
        lambda: visit.page.keyboard.press("+"),
        lambda: visit.page.mouse.wheel(0, -300),
    ]:
        visit.page.focus("#plot")
        visit.page.mouse.move(box["x"] + 300, box["y"] + 200)
        act()
        visit.settle()
        visit.page.wait_for_function(f"({PIXELS})() !== {start!r}")
        visit.page.click("#reset")
        visit.page.mouse.move(2, 2)
        visit.settle()
        assert visit.page.evaluate(PIXELS) == start


def test_colors_and_groups(visit):
    legend = visit.page.locator("#legend button")
    assert legend.all_inner_texts() == [EVIL, "high", "low"]
    everything = visit.page.evaluate(COLORED)["count"]
    legend.nth(1).click()
    visit.settle()
    assert legend.nth(1).get_attribute("aria-pressed") == "false"
    assert visit.page.evaluate(COLORED)["count"] < 0.8 * everything
    before = visit.page.evaluate(PIXELS)
    visit.page.select_option("#color", label="width")
    visit.settle()
    assert legend.count() == 0 and visit.page.evaluate(PIXELS) != before
    low, high = (float(text) for text in visit.page.locator("#legend span").all_inner_texts())
    assert low < -2 < 2 < high


def test_everything_can_be_reached_by_tab(visit):
    order = []
    for _ in range(16):
        visit.page.keyboard.press("Tab")
        order.append(
            visit.page.evaluate("document.activeElement.id || document.activeElement.className")
        )
    chosen = [name for name in order if name]
    expected = "skip axis-x axis-y axis-z color labels rings zoom-in zoom-out reset help"
    assert " ".join(chosen[:11]) == expected
    assert "plot" in chosen and "walk-component" in chosen and "walk-step" in chosen
    visit.page.focus("#plot")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Shift+Tab")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert visit.page.evaluate(style) == "solid"


def test_names_do_no_harm(visit):
    assert visit.page.evaluate("window.harmed") is None
    assert visit.page.locator("img").count() == 0
    assert visit.page.title() == EVIL == visit.text("h1")
    assert EVIL in visit.page.locator("#color option").all_inner_texts()


def test_the_policy_forbids_requests_and_scripts(browser, file):
    visit = Visit(browser, file, **DESKTOP)
    visit.page.evaluate(
        """() => {
          window.broken = [];
          addEventListener("securitypolicyviolation",
            (event) => broken.push(event.violatedDirective));
          for (const [name, key, value] of [
            ["img", "src", "https://example.org/a.png"],
            ["script", "textContent", "window.harmed = 1"],
            ["script", "src", "https://example.org/a.js"],
          ]) document.body.append(Object.assign(document.createElement(name), { [key]: value }));
          fetch("https://example.org/").catch(() => {});
        }"""
    )
    visit.page.wait_for_function("broken.length >= 4")
    broken = sorted(visit.page.evaluate("broken"))
    assert broken == ["connect-src", "img-src", "script-src-elem", "script-src-elem"]
    assert visit.page.evaluate("window.harmed") is None
    page, *others = visit.requests
    # Chromium counts what the policy stopped as requests that failed.
    assert page.url == file.as_uri() and {request.failure for request in others} == {"csp"}
    visit.context.close()


def test_a_phone(browser, file):
    visit = Visit(browser, file, **PHONE)
    page = visit.page
    wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input[type=range]")]
          .filter((part) => part.offsetParent && part.getBoundingClientRect().height < 30).length"""
    )
    assert small == 0, "too small for a finger"
    page.locator("#plot").scroll_into_view_if_needed()
    box = page.locator("#plot").bounding_box()
    for share in np.linspace(0.2, 0.8, 30):
        page.touchscreen.tap(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
        if visit.text("#details").startswith("Chosen"):
            break
    assert visit.text("#details").startswith("Chosen: row")
    assert visit.trouble == []
    visit.context.close()


def test_dark_and_light(browser, file):
    visit = Visit(browser, file, color_scheme="dark", **DESKTOP)
    corner = """() => [
      ...document.getElementById("plot").getContext("2d").getImageData(3, 3, 1, 1).data]"""
    assert max(visit.page.evaluate(corner)[:3]) < 60
    visit.page.emulate_media(color_scheme="light")
    visit.settle()
    assert min(visit.page.evaluate(corner)[:3]) > 200
    assert visit.trouble == []
    visit.context.close()


def test_images(browser, tmp_path):
    X = np.random.default_rng(0).uniform(size=(50, 64))
    model = KernelPCA(2, kernel="rbf", gamma="median").fit(X)
    path = write_report(model, X, tmp_path / "report.html", images=(8, 8))
    visit = Visit(browser, path, **DESKTOP)
    before = visit.page.evaluate(PIXELS)
    visit.page.check("#images")
    visit.settle()
    assert visit.page.evaluate(PIXELS) != before
    visit.page.click("#outliers button >> nth=0")
    pictures = visit.page.locator("#details canvas")
    shown = pictures.evaluate(
        """(picture) => [...picture.getContext("2d").getImageData(0, 0, 8, 8).data]
          .filter((_, k) => k % 4 === 0)"""
    )
    worst = X[int(visit.page.locator("#outliers button").nth(0).inner_text())]
    assert_allclose(shown, 255 * (worst - X.min()) / np.ptp(X), atol=0.51)
    assert visit.page.locator("#walk-view canvas").count() == 1
    assert visit.trouble == []
    visit.context.close()


def test_two_hundred_thousand_points(browser, tmp_path):
    """They move, are found by pointing, and when the view rests all of them are drawn again."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 3)) + 3 * rng.integers(0, 3, (200_000, 1))
    model = KernelPCA(3, kernel="linear").fit(X)
    path = write_report(model, X, tmp_path / "report.html", color=0)
    visit = Visit(browser, path, **DESKTOP)
    visit.page.set_default_timeout(30_000)
    for dimensions in ("none", "component 3"):
        visit.page.select_option("#axis-z", label=dimensions)
        for density in (True, False):
            visit.page.set_checked("#density", density)
            visit.page.mouse.move(2, 2)
            visit.settle()
            start = visit.page.evaluate(PIXELS)
            visit.page.focus("#plot")
            for key in ["Shift+ArrowRight"] * 6:
                visit.page.keyboard.press(key)
                visit.settle()
            assert visit.page.evaluate(PIXELS) != start
            visit.page.keyboard.press("0")
            visit.page.wait_for_timeout(400)
            visit.settle()
            assert visit.page.evaluate(PIXELS) == start
    visit.page.select_option("#axis-z", label="none")
    visit.settle()
    assert re.match(r"row \d+", visit.find_row())
    visit.page.fill("#search", "component 1 > 0")
    count = int(np.sum(model.transform(X)[:, 0].astype(np.float32) > 0))
    assert visit.text("#found") == f"{count} of 200000 rows selected"
    assert visit.trouble == []
    visit.context.close()


def lines_of(download):
    with open(download.path()) as file:
        return list(csv.DictReader(file))


def saved(visit, button):
    with visit.page.expect_download() as waiting:
        visit.page.click(button)
    return waiting.value


def test_the_page_fits_a_screen(browser, file):
    visit = Visit(browser, file, viewport={"width": 1400, "height": 900})
    for part in ("#plot", "#walk-view", "#axis-x", "#export-svg", "#search"):
        box = visit.page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900 and box["x"] + box["width"] <= 1400, part
    visit.context.close()


def test_a_lasso_selects_what_is_inside(visit, rows):
    box = visit.page.locator("#plot").bounding_box()
    x, y, wide, high = box["x"], box["y"], box["width"], box["height"]
    pale = visit.page.evaluate(COLORED)["count"]
    visit.page.click("#lasso")
    assert visit.page.locator("#lasso").get_attribute("aria-pressed") == "true"
    visit.page.mouse.move(x + 60, y + 12)
    visit.page.mouse.down()
    for across, down in [(0.5, 0.02), (0.5, 0.92), (0.08, 0.92)]:
        visit.page.mouse.move(x + across * wide, y + down * high, steps=4)
    visit.page.mouse.up()
    visit.settle()
    count = int(re.match(r"(\d+) of 180 rows selected", visit.text("#found")).group(1))
    assert 0 < count < 180 and visit.page.evaluate(COLORED)["count"] < pale
    found = lines_of(saved(visit, "#export-csv"))
    assert len(found) == count
    left = [float(line["component 1"]) for line in found]
    everything = [float(line["component 1"]) for line in all_rows(visit)]
    # The half of the canvas on the left, the axis's labels not counted.
    assert max(left) < np.median(everything) + 0.3 and len(everything) == 180
    for line in found:
        assert_allclose(float(line["width"]), rows[int(line["row"]), 2], rtol=1e-5)


def all_rows(visit):
    visit.page.focus("#plot")
    visit.page.keyboard.press("Escape")
    assert visit.text("#found") == "" and visit.page.locator("#clear").is_hidden()
    return lines_of(saved(visit, "#export-csv"))


def test_rows_are_found(visit, rows):
    for text, expected in [
        ("17", [17]),
        ("row 17", [17]),
        ("high", list(range(120, 180))),
        ("width > 2.5", np.flatnonzero(rows[:, 2] > 2.5)),
        ("width<=-3", np.flatnonzero(rows[:, 2] <= -3)),
        ("no such thing", []),
    ]:
        visit.page.fill("#search", text)
        assert visit.text("#found") == f"{len(expected)} of 180 rows selected", text
        found = [int(line["row"]) for line in lines_of(saved(visit, "#export-csv"))]
        assert found == list(expected)
    visit.page.fill("#search", "17")
    visit.page.keyboard.press("Enter")
    assert visit.text("#details").startswith("Chosen: row 17")
    visit.page.click("#clear")
    assert visit.text("#found") == "" and visit.page.locator("#search").input_value() == ""


def test_pictures_are_saved(visit):
    png = Path(saved(visit, "#export-png").path()).read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 5000
    svg = ElementTree.parse(saved(visit, "#export-svg").path()).getroot()
    points = svg.findall(".//{http://www.w3.org/2000/svg}use")
    assert len(points) == 180
    shapes = {shape.get("id") for shape in svg.iter() if shape.get("id")}
    assert {point.get("href")[1:] for point in points} <= shapes
    visit.page.locator("#legend button").nth(1).click()
    svg = ElementTree.parse(saved(visit, "#export-svg").path()).getroot()
    assert len(svg.findall(".//{http://www.w3.org/2000/svg}use")) == 120


def test_a_walk_is_seen_in_the_scatter_and_has_names(visit):
    names = visit.page.locator("#walk-view th").all_inner_texts()
    assert names == NAMES
    before = visit.page.evaluate(PIXELS)
    visit.page.focus("#walk-step")
    visit.page.keyboard.press("End")
    visit.settle()
    assert visit.page.evaluate(PIXELS) != before
    widths = visit.page.locator("#walk-view i").evaluate_all(
        "bars => bars.map((bar) => parseFloat(bar.style.width))"
    )
    assert max(widths) > 20 and all(0 <= width <= 50.01 for width in widths)
    # A component on no axis comes onto one.
    visit.page.select_option("#walk-component", label="4")
    assert visit.page.locator("#axis-x").input_value() == "3"


def test_row_names_are_shown_and_found(browser, rows, tmp_path):
    model = KernelPCA(2, kernel="rbf", gamma=0.05).fit(rows)
    names = [f"flower {EVIL} {i}" for i in range(len(rows))]
    path = write_report(model, rows, tmp_path / "report.html", row_names=names)
    visit = Visit(browser, path, **DESKTOP)
    visit.page.fill("#search", 'flower </script><img src=x onerror="window.harmed = 1"> 41')
    assert visit.text("#found") == "1 of 180 rows selected"
    visit.page.keyboard.press("Enter")
    assert visit.text("#details").startswith(f"Chosen: row 41: {names[41]}")
    assert lines_of(saved(visit, "#export-csv"))[0]["name"] == names[41]
    assert visit.page.evaluate("window.harmed") is None and visit.trouble == []
    visit.context.close()


def test_many_points_are_a_density(browser, tmp_path):
    X = np.random.default_rng(1).standard_normal((6000, 2))
    model = KernelPCA(2, kernel="linear").fit(X)
    path = write_report(model, X, tmp_path / "report.html")
    visit = Visit(browser, path, **DESKTOP)
    assert visit.page.locator("#density").is_checked()
    dense = visit.page.evaluate(PIXELS)
    visit.page.uncheck("#density")
    visit.settle()
    assert visit.page.evaluate(PIXELS) != dense
    visit.page.check("#density")
    visit.page.mouse.move(2, 2)
    visit.settle()
    assert visit.page.evaluate(PIXELS) == dense
    assert re.match(r"row \d+", visit.find_row())
    visit.context.close()


def test_few_points_have_no_density(visit):
    assert visit.page.locator("#density-choice").is_hidden()


def test_wide_tables_say_that_they_scroll(browser, file):
    for options, some in [(PHONE, True), ({"viewport": {"width": 1400, "height": 900}}, False)]:
        visit = Visit(browser, file, **options)
        visit.page.wait_for_timeout(100)
        assert (visit.page.locator(".hint:visible").count() > 0) == some
        visit.context.close()


def test_groups_stand_out_at_night(browser, file):
    """Every color of a group is three times as bright as the ground."""
    visit = Visit(browser, file, color_scheme="dark", **DESKTOP)
    colors = visit.page.locator("#legend canvas").evaluate_all(
        """(swatches) => swatches.map((swatch) =>
          [...swatch.getContext("2d").getImageData(9, 9, 1, 1).data].slice(0, 3))"""
    )
    light = [np.dot((np.array(color) / 255) ** 2.2, [0.2126, 0.7152, 0.0722]) for color in colors]
    assert min(light) > 0.09  # the swatch is blended with the ground
    visit.context.close()


TOWNS = ["New York", "Rome", "rock and roll", "Oslo", None]


@pytest.fixture(scope="module")
def people():
    """Columns of every kind, with gaps."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.standard_normal((120, 3)), columns=["a", "b", "c"])
    frame["age"] = np.where(rng.random(120) < 0.1, np.nan, rng.integers(18, 90, 120))
    frame["segment"] = rng.choice(np.array(["pro", "free", "trial", None], dtype=object), 120)
    frame["town"] = [TOWNS[i % 5] for i in range(120)]
    frame["class"] = rng.integers(1, 13, 120).astype(str)
    frame["since"] = pd.to_datetime("2023-12-01") + pd.to_timedelta(rng.integers(0, 90, 120), "D")
    frame["petal width"] = rng.random(120).round(3)
    frame["order"] = 2**31 + np.arange(120)
    frame["a-b (x)"] = np.arange(120) % 7
    frame["code"] = [f"code {i}" for i in range(120)]
    return frame


@pytest.fixture(scope="module")
def people_file(people, tmp_path_factory):
    model = KernelPCA(3, kernel="rbf", gamma=0.01).fit(people[["a", "b", "c"]])
    path = tmp_path_factory.mktemp("people") / "report.html"
    return write_report(model, people, path, color="segment")


@pytest.fixture
def guest(browser, people_file):
    made = Visit(browser, people_file, **DESKTOP)
    yield made
    trouble = made.trouble
    made.context.close()
    assert trouble == []


CONDITIONS = {
    "segment = pro and age > 70": lambda p: (p.segment == "pro") & (p.age > 70),
    "SEGMENT=PRO AND AGE>70": lambda p: (p.segment == "pro") & (p.age > 70),
    "segment = pro or segment = free and age <= 30": lambda p: (
        (p.segment == "pro") | ((p.segment == "free") & (p.age <= 30))
    ),
    "(segment = pro or segment = free) and age <= 30": lambda p: (
        p.segment.isin(["pro", "free"]) & (p.age <= 30)
    ),
    "not segment = pro": lambda p: p.segment != "pro",
    "segment != pro": lambda p: p.segment.notna() & (p.segment != "pro"),
    "not (segment = pro or age >= 40)": lambda p: ~((p.segment == "pro") | (p.age >= 40)),
    "age = missing": lambda p: p.age.isna(),
    "age is missing": lambda p: p.age.isna(),
    "age is not missing and segment is missing": lambda p: p.age.notna() & p.segment.isna(),
    "segment != missing": lambda p: p.segment.notna(),
    'town = "New York"': lambda p: p.town == "New York",
    "town = new york": lambda p: p.town == "New York",
    "town = 'rock and roll' and age < 50": lambda p: (p.town == "rock and roll") & (p.age < 50),
    "rock and roll": lambda p: p.town == "rock and roll",
    "town < p": lambda p: p.town.isin(["New York", "Oslo"]),
    "class > 9": lambda p: p["class"].astype(int) > 9,
    "class = 3": lambda p: p["class"] == "3",
    "since >= 2024-01-01": lambda p: p.since >= "2024-01-01",
    "since < 2024": lambda p: p.since < "2024-01-01",
    "since = 2024-01-15": lambda p: p.since == "2024-01-15",
    "petal width > 0.5": lambda p: p["petal width"] > 0.5,
    '"petal width" <= .25': lambda p: p["petal width"] <= 0.25,
    "petal width = 0.5": lambda p: p["petal width"] == 0.5,
    "order = 2147483655": lambda p: p.order == 2147483655,
    "a-b (x) >= 5": lambda p: p["a-b (x)"] >= 5,
    "a > -1e-1 and a < 1": lambda p: (p.a > -0.1) & (p.a < 1),
    "17": lambda p: p.index == 17,
    "row 17 or row 18": lambda p: p.index.isin([17, 18]),
    "code 117": lambda p: p.code == "code 117",
    "rome and age > 30": lambda p: (p.town == "Rome") & (p.age > 30),
    "nobody here": lambda p: p.index < 0,
}


def exported_rows(visit):
    """Numbers of the rows in the file that would be saved: browsers allow only some downloads."""
    text = visit.page.evaluate(
        """async () => {
          const [make, click] = [URL.createObjectURL, HTMLAnchorElement.prototype.click];
          let made = null;
          URL.createObjectURL = (blob) => { made = blob; return "#"; };
          HTMLAnchorElement.prototype.click = () => {};
          document.getElementById("export-csv").click();
          [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [make, click];
          return made.text();
        }"""
    )
    return [int(line["row"]) for line in csv.DictReader(text.splitlines())]


def test_conditions_find_rows(guest, people):
    for text, condition in CONDITIONS.items():
        guest.page.fill("#search", text)
        expected = np.flatnonzero(condition(people))
        assert guest.text("#found") == f"{len(expected)} of 120 rows selected", text
        if len(expected):
            assert exported_rows(guest) == expected.tolist(), text


MISTAKES = {
    "agge > 3": 'no column "agge". Did you mean age?',
    "sgement = pro": "Did you mean segment?",
    "nothing = 3": 'no column "nothing"',
    "age >": "What age is compared with is missing",
    "age > and segment = pro": "What age is compared with is missing",
    "age > old": "age is compared with a number",
    "since > soon": "a date such as",
    "(age > 3": "A ) is missing",
    "age > 3)": "a ) too many",
    'town = "Rome': 'A " is missing',
    "age > 3 and": "A condition is missing",
    "age is old": 'comes "missing"',
    "> 3": "no column before",
}


def test_what_is_not_understood_is_said(guest):
    for text, message in MISTAKES.items():
        guest.page.fill("#search", text)
        answer = guest.text("#found")
        assert answer.startswith("Not understood: ") and message in answer, text
        assert guest.page.locator("#search").get_attribute("aria-invalid") == "true", text
        assert guest.page.locator("#clear").is_hidden(), f"{text} selects nothing"
        guest.page.fill("#search", "17")
        assert guest.text("#found") == "1 of 120 rows selected", text


def test_all_columns_are_exported_and_color(guest, people):
    lines = lines_of(saved(guest, "#export-csv"))
    for name in ("town", "segment", "class", "code"):
        assert [line[name] for line in lines] == people[name].fillna("").tolist()
    ages = [float(line["age"] or "nan") for line in lines]
    np.testing.assert_array_equal(ages, people["age"])
    assert [line["since"] for line in lines] == people["since"].dt.strftime("%Y-%m-%d").tolist()
    assert [int(line["order"]) for line in lines] == people["order"].tolist()
    seen = set()
    for name in [*people, "reconstruction error"]:
        guest.page.select_option("#color", label=name)
        guest.settle()
        seen.add(guest.page.evaluate(PIXELS))
        legend = guest.page.locator("#legend button")
        if name == "code":
            texts = legend.all_inner_texts()
            assert len(texts) == 60 and texts[-1] == "61 other groups"
        if name == "since":
            ends = guest.page.locator("#legend span").all_inner_texts()
            assert ends == [f"{day:%Y-%m-%d}" for day in people.since.agg(["min", "max"])]
    assert len(seen) == people.shape[1] + 1


def test_groups_have_labels_on_the_map(guest):
    labels = "JSON.parse(document.getElementById('plot').dataset.labels)"
    assert set(guest.page.evaluate(labels)) <= {"pro", "free", "trial"}
    assert guest.page.evaluate(labels)
    before = guest.page.evaluate(PIXELS)
    guest.page.uncheck("#labels")
    guest.settle()
    assert guest.page.evaluate(PIXELS) != before
    guest.page.select_option("#color", label="age")
    assert guest.page.locator("#labels-choice").is_hidden()


def test_nearest_rows_of_a_row(guest, people):
    model = KernelPCA(3, kernel="rbf", gamma=0.01).fit(people[["a", "b", "c"]])
    S = model.transform(people[["a", "b", "c"]])
    guest.page.fill("#search", "41")
    guest.page.keyboard.press("Enter")
    far = np.linalg.norm(S - S[41], axis=1)
    names = guest.page.locator(".nearest button").all_inner_texts()
    found = [int(name.split()[1]) for name in names]
    assert_allclose(far[found], np.sort(far)[1:9], rtol=1e-4)
    guest.page.locator(".nearest button").nth(0).click()
    assert guest.text("#details").startswith(f"Chosen: row {found[0]}")


def test_help_is_behind_a_button_and_its_searches_work(guest, people_file):
    page = guest.page
    assert page.locator("#plot-help").is_hidden()
    page.click("#help")
    assert page.locator("#plot-help").is_visible()
    for text in page.locator("#plot-help code").all_inner_texts():
        page.evaluate(
            "text => { const box = document.getElementById('search');"
            "box.value = text; box.dispatchEvent(new Event('input')); }",
            text,
        )
        assert int(guest.text("#found").split()[0]) > 0, text
    page.keyboard.press("Escape")
    assert page.locator("#plot-help").is_hidden()
    page.click("#clear")


def test_rings_mark_rows_unlike_the_others(browser, tmp_path):
    """Fifteen rows far from all others are one dot in the middle: a ring says how many."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(300, 4))
    X[:15] += np.array([30.0, 30, -30, -30]) + 12 * rng.standard_normal((15, 4))
    model = KernelPCA(6, kernel="rbf", gamma="median").fit(X)
    path = write_report(model, X, tmp_path / "report.html", color=np.arange(300) < 15)
    visit = Visit(browser, path, **DESKTOP)
    rings = "JSON.parse(document.getElementById('plot').dataset.rings)"
    assert max(visit.page.evaluate(rings)) >= 15
    svg = ElementTree.parse(saved(visit, "#export-svg").path()).getroot()
    assert len(svg.findall(".//{http://www.w3.org/2000/svg}circle")) >= 1
    ringed = visit.page.evaluate(PIXELS)
    visit.page.uncheck("#rings")
    visit.settle()
    assert visit.page.evaluate(PIXELS) != ringed and visit.page.evaluate(rings) == []
    visit.page.check("#rings")
    visit.page.locator("#legend button").nth(1).click()
    visit.settle()
    assert sum(visit.page.evaluate(rings)) < 15, "groups that are hidden have no rings"
    visit.context.close()


def test_histograms_filter(guest, people):
    """A brush selects, two select what both mean, and all is let go of at once."""
    page = guest.page
    captions = page.locator("#histograms figcaption").all_inner_texts()
    at = captions.index("segment")
    chart = page.locator("#histograms canvas").nth(at)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    # The groups and what is missing, from left to right.
    groups = people.segment.fillna("none")
    counts = [int((groups == one).sum()) for one in ("free", "pro", "trial", "none")]
    page.mouse.click(box["x"] + 1.5 * box["width"] / 4, box["y"] + 30)
    assert guest.text("#found") == f"{counts[1]} of 120 rows selected"
    page.mouse.click(box["x"] + 1.5 * box["width"] / 4, box["y"] + 30)
    assert guest.text("#found") == ""
    page.mouse.move(box["x"] + 2.5 * box["width"] / 4, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 3.5 * box["width"] / 4, box["y"] + 30, steps=4)
    page.mouse.up()
    assert guest.text("#found") == f"{counts[2] + counts[3]} of 120 rows selected"
    guest.settle()
    assert page.locator("#histograms output").nth(at).inner_text() == "trial, missing"
    page.fill("#search", "age > 50")
    both = ((people.segment == "trial") | people.segment.isna()) & (people.age > 50)
    assert guest.text("#found") == f"{int(both.sum())} of 120 rows selected"
    assert exported_rows(guest) == np.flatnonzero(both).tolist()
    page.click("#clear")
    assert guest.text("#found") == "" and page.locator("#search").input_value() == ""
    # By keys, on a column of numbers that is added.
    page.select_option("#histogram-add", label="petal width")
    page.locator("#histograms canvas").last.focus()
    page.keyboard.press("ArrowRight")
    width = people["petal width"]
    first = width <= width.min() + (width.max() - width.min()) / 24
    assert guest.text("#found") == f"{int(first.sum())} of 120 rows selected"
    page.keyboard.press("Escape")
    assert guest.text("#found") == ""


def test_a_lasso_is_seen_in_the_density(browser, tmp_path):
    """Rows that are not selected lose their color."""
    X = np.random.default_rng(1).standard_normal((6000, 2))
    path = write_report(KernelPCA(2, kernel="linear").fit(X), X, tmp_path / "report.html")
    visit = Visit(browser, path, **DESKTOP)
    everything = visit.page.evaluate(COLORED)["count"]
    visit.page.fill("#search", "component 1 > 0")
    visit.settle()
    selected = visit.page.evaluate(COLORED)["count"]
    assert 0.25 * everything < selected < 0.75 * everything
    box = visit.page.locator("#plot").bounding_box()
    visit.page.click("#lasso")
    visit.page.mouse.move(box["x"] + 200, box["y"] + 100)
    visit.page.mouse.down()
    before = visit.page.evaluate(PIXELS)
    visit.page.mouse.move(box["x"] + 400, box["y"] + 100, steps=2)
    visit.page.mouse.move(box["x"] + 400, box["y"] + 300, steps=2)
    visit.settle()
    assert visit.page.evaluate(PIXELS) != before, "the line is drawn"
    visit.page.mouse.up()
    assert re.match(r"\d+ of 6000 rows selected", visit.text("#found"))
    visit.context.close()


def test_whiskers_show_how_far_scores_can_be_off(browser, rows, tmp_path):
    """As long as the certificate says, in the units of the axis; none where it says nothing."""
    model = KernelPCA(3, kernel="rbf", gamma=0.02).fit(rows)
    known = model.certificate_
    shares = np.array([0.05, np.nan, 0.02])
    model.certificate_ = replace(known, score_error=shares)
    S = model.transform(rows)
    visit = Visit(browser, write_report(model, rows, tmp_path / "report.html"), **DESKTOP)
    frame = visit.page.locator("#plot").bounding_box()
    # The frame of the points, of which the scores take 92 % between their ends.
    room = 0.92 * np.array([frame["width"] - 56 - 10, frame["height"] - 44 - 10])

    def expected(k, a):
        half = shares[k] * np.sqrt(np.mean(S[:, k] ** 2)) / np.ptp(S[:, k])
        return 0.0 if np.isnan(half) else half * room[a]

    def found():
        visit.settle()
        text = visit.page.locator("#plot").get_attribute("data-whiskers")
        return [float(one) for one in text.split()]

    assert_allclose(found(), [expected(0, 0), 0], atol=0.5)
    visit.page.select_option("#axis-y", label="component 3")
    assert_allclose(found(), [expected(0, 0), expected(2, 1)], atol=0.5)
    assert min(found()) > 1
    visit.context.close()


def test_pages_of_all_estimators_come_to_life(browser, rows, tmp_path):
    """With and without errors, pre-images, spectra and labels."""
    y = {"KernelCCA": rows[:, :2] ** 2, "SupervisedKernelPCA": np.repeat([0, 1, 2], 60)}
    for name, model in ESTIMATORS.items():
        clone(model).fit(rows, y.get(name)).report(rows, tmp_path / f"{name}.html")
        visit = Visit(browser, tmp_path / f"{name}.html", **DESKTOP)
        visit.page.fill("#search", "component 1 > 0 or column 2 <= 0")
        assert re.match(r"\d+ of 180 rows selected", visit.text("#found")), name
        visit.page.keyboard.press("Enter")
        assert visit.text("#details").startswith("Chosen: row"), name
        assert visit.page.locator(".nearest button").count() == 8
        assert visit.trouble == [], name
        visit.context.close()
