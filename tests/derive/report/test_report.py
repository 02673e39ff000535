"""Reports: one page or one LaTeX file that tells a whole derivation, and says nothing that its records do not say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import pytest
import sympy
from browser import Browser, find_browser
from click.testing import CliRunner
from conftest import SHIPPED, derivation_of, model_named, target_of
from fontTools.ttLib import TTFont
from scipy import stats

from derive.api.reporting import write_all
from derive.cli import main
from derive.errors import DeriveError
from derive.inputs.loading import declaration_sources, load_model
from derive.pipeline import PROBE_STAGES, derive_model
from derive.printing import latex, latex_of_record
from derive.printing.documents import latex_of_statement
from derive.printing.mathml import UnknownMathematics, mathml, mathml_pieces
from derive.printing.names import PrintedNames
from derive.printing.of_training import each_pair_once, joined_terms, spectral_sections
from derive.printing.tex import TexPrinter
from derive.report import html_of_report, latex_of_report, report_of, writing
from derive.report.assumptions import assumptions, levels
from derive.report.document import Fold, Math, Prose, References, with_names
from derive.report.fonts import FAMILY, GREEK, PARTS, cut_font, font_faces, font_of, slanted
from derive.report.html import highlighted
from derive.report.writing import prose_of, title_of
from numerics.simulation.compare import expected_by_chance

ROOT = Path(__file__).parents[3]
CHAPTERS = (
    "result declaration action average order-parameters conjugates saddle-point single-site time-order method "
    "projected a-of-z pencil bulk code comparison assumptions references"
).split()
STAGES = {
    "action": ("action",),
    "average": ("average",),
    "saddle": ("order-parameters", "saddle-point"),
    "conjugates": ("conjugates",),
    "single-site": ("single-site",),
    "order": ("time-order",),
    "method": ("method",),
    "probe": ("projected",),
    "blocks": ("a-of-z",),
    "pencil": ("pencil",),
    "bulk": ("bulk",),
}
CASES = [(name, ()) for name in SHIPPED if model_named(name).probes] + [
    ("deep_linear", (("L", 1), ("data", "online"))),
    ("gated_network", ()),
]
NO_PROBE = '''"""A drifting vector <b>& nothing</b> more: no spectrum, naïve γ > 0.

    a(t+1) = a(t) + ...
"""

from sympy import sqrt, tanh

from derive import Eq, Model, field, gaussian, mean, normal, parameter, positive, sectors
from derive import training_clock, whole_positive

eta = parameter("eta", default=0.3, domain=positive, doc="rate < 1 & > 0 <script>alert(1)</script>")
T = parameter("T", default=3, domain=whole_positive)
D, N = sectors("D", N=2)
t = training_clock("t", steps=T)
W = gaussian("W", N, D)
start = normal("start", D)
a, h = field("a", D, t), field("h", N, t)
MODEL = Model(
    parameters=(eta, T),
    equations=[
        Eq(a(0), start),
        Eq(h(t), W @ a(t) / sqrt(D)),
        Eq(a(t + 1), tanh(a(t)) - eta * W.T @ h(t) / sqrt(N)),
    ],
    observe={"size": mean(a(t) ** 2)},
)
'''


@cache
def report_on(name: str, chosen: tuple = ()):
    """A report without simulation, and what it was made from."""
    model = model_named(name, **dict(chosen))
    derivation = derivation_of(name, **dict(chosen))
    values = {p.name: p.default for p in model.parameters}
    built = sorted((ROOT / "generated" / model.name).glob("*.py"))
    files = {path.name: path.read_text(encoding="utf-8") for path in built}
    made = report_of(derivation, values, declaration_sources(target_of(name)), files)
    return made, model, levels(derivation)


@cache
def page_of(name: str, chosen: tuple = ()) -> str:
    return html_of_report(report_on(name, chosen)[0])


class Reader(HTMLParser):
    """What a page holds: equations by chapter, ids, links, and whether every element is closed."""

    EMPTY = ("meta", "br", "img", "wbr", "source", "link", "mspace")

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.chapter = ""
        self.equations: dict[str, list[str]] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.buttons = 0
        self.outside: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.outside += [given[k] for k in ("src", "srcset", "action", "data") if k in given]
        if given.get("class") == "chapter":
            self.chapter = given["id"]
        if "data-latex" in given:
            self.equations.setdefault(self.chapter, []).append(given["data-latex"])
        self.buttons += given.get("class") == "copy"

    def handle_startendtag(self, tag, attrs):
        assert tag in self.EMPTY or tag in ("mrow",), tag

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{tag} closes something else"


@pytest.mark.long_cases("extensive_multilayer-chosen4")
@pytest.mark.slow
@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_page_has_every_section_in_order(name, chosen):
    page = page_of(name, chosen)
    reader = Reader(page)
    assert not reader.open
    assert [i for i in reader.ids if i in CHAPTERS] == CHAPTERS
    contents = page[page.index("<nav") : page.index("</nav>")]
    assert re.findall(r'href="#([\w-]+)"', contents) == CHAPTERS
    assert len(reader.ids) == len(set(reader.ids))
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert page.count('<details class="chapter"') == len(CHAPTERS)
    assert page.count("<summary>") == page.count("</details>") == page.count("<details")
    assert reader.buttons == sum(map(len, reader.equations.values())) > 10


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_nothing_comes_from_outside(name, chosen):
    page = page_of(name, chosen)
    reader = Reader(page)
    assert all(link.startswith("#") for link in reader.links)
    assert all(address.startswith("data:") for address in reader.outside)
    assert not re.search(r"https?:|@import|url\((?!data:)|<link|<iframe|src=\"(?!data:)", page)


def training_of(told_of: dict):
    """The training level: of several layers without their spectral fields, which each layer tells for itself."""
    first = next(iter(told_of.values()))
    return first if len(told_of) == 1 else first.training


def printed_of(level, stage: str, layers: int) -> str:
    latex = latex_of_record(level.record(stage))
    if stage != "probe" or layers == 1:
        return latex
    printer = TexPrinter(PrintedNames.of(level.saddle))
    statements = [s for section in spectral_sections(level.saddle) for s in section.statements]
    return "\n".join([*(line for s in statements for line in latex_of_statement(s, printer)), latex])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_equations_are_those_of_the_records(name, chosen):
    """Chapter by chapter: as many equations as the records print, each in the very LaTeX they print."""
    _, _, told_of = report_on(name, chosen)
    equations = Reader(page_of(name, chosen)).equations
    first = training_of(told_of)
    for stage, chapters in STAGES.items():
        told = list(told_of.values()) if stage in PROBE_STAGES else [first]
        printed = list(dict.fromkeys(printed_of(level, stage, len(told_of)) for level in told))
        copied = [e for chapter in chapters for e in equations.get(chapter, [])]
        assert len(copied) == sum(text.count("\\[") for text in printed)
        place, text = 0, "\n".join(printed)
        for equation in copied:
            place = text.index(equation, place) + len(equation)
    written_out = latex_of_record(first.record("system"))
    assert all(f"{e}" in written_out for e in equations["declaration"][-written_out.count("\\[") :])


@pytest.mark.long_cases("extensive_multilayer-chosen4", "extensive_two_layer-chosen5")
@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_mathematics_is_well_formed_and_whole(name, chosen):
    """Every formula is translated, parses as XML, and keeps its fractions, roots and sums."""
    page = page_of(name, chosen)
    assert 'class="raw"' not in page
    for element in re.findall(r"<math.*?</math>", page):
        ElementTree.fromstring(element)
    for source in {e for es in Reader(page).equations.values() for e in es}:
        tree = ElementTree.fromstring("<p>" + "".join(mathml_pieces(source)) + "</p>")
        for command, tag in ((r"\frac", "mfrac"), (r"\sqrt", "msqrt"), (r"\begin{bmatrix}", "mtable")):
            assert source.count(command) == len(list(tree.iter(tag))), source
        text = "".join(tree.itertext())
        assert source.count(r"\sum") == text.count("∑") and source.count(r"\psi") == text.count("ψ")


def test_a_formula_breaks_between_its_terms():
    pieces = mathml_pieces(r"a(t) = b - c\, d + \left(e + f\right) + \frac{g + h}{2}")
    letters = ["".join(ElementTree.fromstring(p).itertext()) for p in pieces]
    assert letters == ["a(t)=", "b", "−cd", "+(e+f)", "+g+h2"]
    broken = mathml_pieces("\\begin{aligned}\na = &b + c \\\\\n&\\quad - d\n\\end{aligned}")
    assert ["".join(ElementTree.fromstring(p).itertext()) for p in broken] == ["a=", "b", "+c", "−d"]
    assert ["".join(ElementTree.fromstring(p).itertext()) for p in mathml_pieces("G^{2} - G z + 1 = 0")][-1] == "=0"
    assert len(mathml_pieces(r"-\frac{1}{D}\, \bigl(a \cdot b\bigr)\, \bigl(c \cdot d\bigr)")) == 2


def test_mathematics_of_functions_and_cases():
    inner = mathml(
        r"\begin{cases} \tanh{\left(x \right)} & \text{for}\: x > 0 \\- \operatorname{erf}{x} & y' \end{cases}"
    )
    tree = ElementTree.fromstring(inner)
    assert "".join(tree.itertext()) == "{tanh(x)for x>0−erfxy′".replace(" ", "")
    assert len(list(tree.iter("mtd"))) == 4
    assert mathml(r"x_{1}^{2}") == "<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>"
    for unknown in (r"\unheardof{x}", r"\left x", "{x", r"\begin{picture}x\end{picture}", "x}"):
        with pytest.raises(UnknownMathematics):
            mathml(unknown)


def test_mathematics_of_laws_that_users_write():
    x, y = sympy.symbols("x y", real=True)
    laws = [
        sympy.sign(x), sympy.Abs(x), sympy.Max(0, x), sympy.erf(x), sympy.exp(-(x**2) / 2), sympy.log(1 + sympy.exp(x)),
        sympy.Heaviside(x), x ** sympy.Rational(3, 2), sympy.atan(x), sympy.sinh(x) ** 2, sympy.cbrt(x), sympy.floor(x),
        sympy.Piecewise((x, (x > 0) & (y < 1)), (y, x <= -1), (0, True)), sympy.Mod(x, 2), sympy.Float("1e-20") * x,
    ]  # fmt: skip
    for law in laws:
        (piece,) = mathml_pieces(latex(law))
        assert "x" in "".join(ElementTree.fromstring(piece).itertext())


# -- the font, and what is said around the equations


def letters_of(name: str) -> set[str]:
    return set(map(chr, TTFont(BytesIO(font_of(name))).getBestCmap()))


@pytest.mark.parametrize("name", PARTS)
def test_fonts_hold_the_letters_that_they_promise(name):
    """And their layout for mathematics, a licence that may be read, and a name that is not reserved."""
    font = TTFont(BytesIO(font_of(name)))
    assert letters_of(name) >= set(PARTS[name]) - {"\u2061", "\u2062", "\u2063"} and "MATH" in font
    assert "Open Font License" in font["name"].getDebugName(13) and font["name"].getDebugName(1) == "Report Math"
    assert cut_font(PARTS[name], FAMILY) == font_of(name)


@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_every_letter_of_mathematics_is_in_the_fonts_of_the_page(name, chosen):
    """As a browser draws it: a letter that stands alone leans, a root has a sign of its own."""
    page = page_of(name, chosen)
    drawn = set()
    for element in re.findall(r"<math.*?</math>", page):
        tree = ElementTree.fromstring(element)
        for part in tree.iter():
            text = part.text or ""
            leaning = part.tag == "mi" and len(text) == 1 and text.isalpha() and "mathvariant" not in part.attrib
            drawn |= {slanted(text)} if leaning and (text.isascii() or text in GREEK) else set(text)
            drawn |= {"√"} if part.tag in ("msqrt", "mroot") else set()
    embedded = page.count("@font-face")
    assert embedded in (1, 2) and drawn - {" ", "\n"} <= set().union(*map(letters_of, list(PARTS)[:embedded]))


def test_rare_alphabets_come_only_where_they_are_used():
    assert font_faces("𝑥 √").count("@font-face") == 1
    both = font_faces("𝑥 𝒜")
    assert both.count("@font-face") == 2 == both.count("unicode-range") and "U+1D49C" in both


def test_terms_that_differ_in_the_names_of_times_are_joined():
    """Each ordered pair of uses of a matrix is one term of the average; half of the mixed ones say the same."""
    level = next(iter(report_on("anti_hebbian")[2].values()))
    record = level.record("average")
    joined = joined_terms(record.terms)
    assert len(record.terms) == 8 and len(joined) == 6
    assert sum(t.weight for t in joined) == sum(t.weight for t in record.terms)
    mirrored = [replace(t, left=t.left[::-1], right=t.right[::-1]) for t in record.terms]
    assert len(joined_terms([*record.terms, *mirrored])) == 6
    covariances = level.record("saddle").covariances
    assert len(covariances) == 4 and len(each_pair_once(covariances)) == 3


def test_factors_have_thin_spaces():
    x, y = sympy.symbols("x y")
    assert latex(2 * x * y) == r"2 x\, y" and latex(x / (2 * y)) == r"\frac{x}{2 y}"


def test_the_declaration_is_mathematics():
    page = page_of("anti_hebbian")
    head = page[page.index("<header>") : page.index("</header>")]
    assert "A symmetric matrix that learns the trajectory it drives." in head
    assert "v(t+1)" not in head and "^T" not in head and head.count('class="formula"') == 5


@pytest.mark.parametrize(
    ("doc", "title", "prose"),
    [
        ("A model: it moves. x(t+1) = x(t) in time. It stops.", "A model", ("It moves.",)),
        ("A matrix plus a spike, M = M0 + v v^T.\n\n    M = 1\n\nMore, in words.", "", ("More, in words.",)),
        ("One thing: a matrix, M = 2.", "One thing", ("A matrix.",)),
        ("", "", ()),
    ],
)
def test_words_of_a_declaration_without_its_formulas(doc, title, prose):
    assert title_of(doc) == title
    assert prose_of(doc)[-1:] == prose[-1:]


def test_names_in_sentences_are_mathematics():
    told = with_names(
        ("M0 is D x D; a mean is 1/z, not Stein's s. See D.",), {"M0": "M_{0}", "D": "D", "z": "z", "s": "s"}
    )
    assert told == (
        Math("M_{0}"), " is ", Math(r"D \times D"), "; a mean is ", Math("1/z"), ", not Stein's ", Math("s"), ". See ",
        Math("D"), ".",
    )  # fmt: skip


def test_words_of_an_explanation_are_no_names():
    """deep_linear has a field named delta."""
    assert "Each equation is a delta function" in page_of("deep_linear")


def prose_in(blocks) -> int:
    return sum(isinstance(b, Prose) or (isinstance(b, Fold) and prose_in(b.blocks) > 0) for b in blocks)


@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_chapters_say_why_and_cite(name, chosen):
    made, _, _ = report_on(name, chosen)
    last = made.chapters[-1].blocks[0]
    assert isinstance(last, References)
    listed = [key for key, _ in last.entries]
    cited = dict.fromkeys(key for chapter in made.chapters for key in chapter.cites)
    assert list(cited) == listed
    assert all(entry == entry.strip() for _, entry in last.entries)
    assert {"martin-siggia-rose", "janssen", "de-dominicis", "stein", "paper", "baik-ben-arous-peche"} <= set(listed)
    for chapter in made.chapters:
        if chapter.key in ("action", "average", "order-parameters", "saddle-point", "projected", "a-of-z", "bulk"):
            assert prose_in(chapter.blocks) > 0, chapter.key


def test_chance_is_counted():
    rows = [SimpleNamespace(compared=True)] * 12 + [SimpleNamespace(compared=False)]
    assert expected_by_chance(rows, 10) == pytest.approx(12 * 2 * stats.t.sf(3, 9))


# -- assumptions


@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_every_assumption_of_the_records_is_listed(name, chosen):
    _, _, told_of = report_on(name, chosen)
    said = [" ".join(map(str, a.statement)).lower() for a in assumptions(told_of)]
    for level in told_of.values():
        for assumed in level.bulk.assumptions:
            assert assumed.lower() in said
    assert len(said) == len(set(said))


def told(name: str, **chosen) -> str:
    listed = assumptions(report_on(name, tuple(chosen.items()))[2])
    parts = [part for a in listed for line in (a.statement, *a.particulars) for part in line]
    return " ".join(part if isinstance(part, str) else part.latex for part in parts)


@pytest.mark.slow
def test_assumptions_follow_from_the_model():
    assert "symmetric" in told("anti_hebbian") and "symmetric" not in told("coupled_spikes")
    assert "Laws are exact" in told("coupled_spikes") and "Laws are sampled" in told("coupled_spikes_tanh")
    assert "afresh" in told("deep_linear", L=1, data="online") and "afresh" not in told("deep_linear", L=3)
    assert "Stein" in told("anti_hebbian") and "Stein" not in told("extensive_two_layer")
    assert "layers 0, 1" not in told("deep_linear", L=3)
    assert "readout_norm shifts the whole spectrum" in told("deep_linear", L=1, data="online")
    assert "Newton" not in told("spiked_wigner") and "closed form" in told("spiked_wigner")


# -- from the command line


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["report", *arguments])


@pytest.mark.slow
def test_report_with_a_simulation(run, tmp_path):
    done = run("spiked_wigner", "gamma0=2", "--size", "60", "--seeds", "3", "-o", "page.html", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["sections"] == CHAPTERS and told["parameters"] == {"gamma0": 2.0}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert told["equations"] == page.count("data-latex=")
    assert page.count("<picture>") == 1 + bool(report_on("spiked_wigner")[1].observe)
    assert "outlier 1 above the bulk" in page and "2.5" in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html"]


@pytest.mark.slow
def test_report_on_one_layer(run, tmp_path):
    assert run("deep_linear", "layer=1", "--no-simulation", "-o", "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "layer 1 only" in page and "written without a simulation" in page
    assert Reader(page).equations["a-of-z"] != Reader(page_of("deep_linear")).equations["a-of-z"]


@pytest.mark.slow
def test_report_without_a_probe(run, declared, tmp_path):
    path = declared(NO_PROBE)
    done = run(str(path), "--size", "60", "--seeds", "3", "--samples", "2000", "-o", "page.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    reader = Reader(page)
    assert [i for i in reader.ids if i in CHAPTERS] == [c for c in CHAPTERS if c not in ("a-of-z", "pencil", "bulk")]
    assert "probes no matrix" in page and "size at 3" in page
    assert "<script>alert" not in page and "<b>&" not in page
    assert str(tmp_path) not in page


@pytest.mark.slow
def test_latex_compiles(run, declared, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    path = declared(NO_PROBE)
    assert run(str(path), "--size", "40", "--seeds", "3", "--samples", "2000", "-o", "mine.tex").exit_code == 0
    for name, chosen in (("deep_linear", (("L", 3),)), ("extensive_multilayer", ())):
        (tmp_path / f"{name}.tex").write_text(latex_of_report(report_on(name, chosen)[0]), encoding="utf-8")
    for document in sorted(tmp_path.glob("*.tex")):
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, errors="replace")
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Overfull \\hbox" not in done.stdout
    assert (tmp_path / "mine-observables.pdf").exists()


def test_latex_holds_the_same_equations():
    made, _, _ = report_on("coupled_spikes")
    text = latex_of_report(made)
    for equations in Reader(page_of("coupled_spikes")).equations.values():
        assert all(equation in text for equation in equations)


@pytest.mark.long
@pytest.mark.slow
def test_same_bytes_under_any_hash_seed(tmp_path):
    pages = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "derive", "report", "coupled_spikes", "--no-simulation", "-o", str(out)]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TWO_LEVEL_DMFT_CACHE": ""}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("spiked_wigner", "-o", "page.pdf"), 2, "end the file name in .html"),
        (("spiked_wigner", "-o", "page.html", "--format", "latex"), 2, "ends in .tex"),
        (("spiked_wigner", "-o", "nowhere/page.html"), 2, "there is no directory nowhere"),
        (("spiked_wigner", "-o", "a page.tex"), 2, "use letters, digits"),
        (("spiked_wigner", "gama0=2"), 2, "did you mean gamma0?"),
        (("spiked_wignr",), 2, "did you mean spiked_wigner?"),
        (("deep_linear", "layer=7"), 2, "the layers are 0, 1"),
        (("spiked_wigner", "--seeds", "1"), 2, "seeds must be at least 2"),
        (("deep_linear", "L=1", "eta=500", "T=60", "--size", "20", "--seeds", "2"), 3, "--no-simulation"),
    ],
)
def test_errors_are_one_sentence_and_write_nothing(run, tmp_path, arguments, code, sentence):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert done.output.startswith("error: ") and done.output.count("\n") == 1 and sentence in done.output
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DeriveError, match="No space left"):
        write_all(tmp_path / "page.html", {"picture.pdf": b"x", "page.html": b"y"})
    assert not list(tmp_path.iterdir())


def test_source_is_shown_with_what_it_imports():
    names = [name for name, _ in declaration_sources("coupled_spikes_tanh")]
    assert names == ["coupled_spikes_tanh.py", "coupled_spikes.py"]
    assert "Source: coupled_spikes.py" in page_of("coupled_spikes_tanh")


def test_highlighting_changes_no_letter():
    source = 'def f(x):  # a "comment"\n    return f"{x!r} < 3" + """two\nlines""" * 1e-3\n'
    marked = highlighted(source)
    from html import unescape

    assert unescape(re.sub(r"</?span[^>]*>", "", marked)) == source
    assert '<span class="k">def</span> <span class="d">f</span>' in marked and '<span class="c">' in marked
    assert highlighted("def (:\n  'open") == "def (:\n  &#x27;open"


# -- in a real browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed")
    with Browser(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  const boxes = new Set(["auto", "scroll", "hidden"]);
  const beyond = [];
  for (const e of document.querySelectorAll("body *")) {
    const r = e.getBoundingClientRect();
    if (r.width === 0 || r.right <= wide + 1) continue;
    let held = false;
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (boxes.has(getComputedStyle(p).overflowX)) held = true;
    if (!held) beyond.push(e.tagName + "." + e.className + " " + r.right);
  }
  return [document.documentElement.scrollWidth - wide, beyond.slice(0, 5)];
})()
"""
MATH = """
[...document.querySelectorAll("math")]
  .filter(m => { const r = m.getBoundingClientRect(); return !(r.width > 2 && r.height > 2); }).map(m => m.outerHTML)
"""


@pytest.mark.long_cases(
    "coupled_spikes_tanh-chosen1-1920",
    "deep_linear-chosen2-1920",
    "extensive_multilayer-chosen3-360",
    "extensive_multilayer-chosen3-1920",
)
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1920])
@pytest.mark.parametrize(
    ("name", "chosen"),
    [("anti_hebbian", ()), ("coupled_spikes_tanh", ()), ("deep_linear", (("L", 3),)), ("extensive_multilayer", ())],
)
def test_page_in_a_browser(browser, tmp_path, name, chosen, width):
    """Opened from a file, all folds open: nothing overflows, every formula is drawn, nothing is asked for."""
    path = tmp_path / "page.html"
    path.write_text(page_of(name, chosen), encoding="utf-8")
    browser.open(path, width, touch=width < 500)
    browser.run("document.getElementById('open-all').click()")
    assert browser.run("[...document.querySelectorAll('main details')].every(d => d.open)")
    too_wide, beyond = browser.run(OVERFLOW)
    assert too_wide == 0 and not beyond
    assert browser.run("document.querySelectorAll('math').length") == page_of(name, chosen).count("<math")
    assert browser.run(MATH) == []
    assert browser.complaints() == [] and browser.requests() == []


HATS = r"\widehat{(J_{0}^{\top} g_{1})}(t) \cdot h_{0}(s)"


@pytest.mark.slow
@pytest.mark.parametrize("bare", [True, False])
def test_hats_and_roots_are_drawn_whole_without_other_fonts(tmp_path, monkeypatch, bare):
    """Wherever on the page: hats as wide as what they cover, roots wider than what is under them."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed")
    if bare:  # one font without mathematics; a page without its own would show boxes
        plain = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "cmss10.ttf"
        (tmp_path / "fonts").mkdir()
        shutil.copy(plain, tmp_path / "fonts")
        told = f"<fontconfig><dir>{tmp_path / 'fonts'}</dir><cachedir>{tmp_path / 'cache'}</cachedir></fontconfig>"
        (tmp_path / "fonts.conf").write_text(told)
        monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    formula = "".join(mathml_pieces(HATS))
    lines = "".join(f'<div style="margin-left:{40 * k}px" class="formula">{formula}</div>' for k in range(24))
    style = page_of("spiked_wigner").partition("<style>")[2].partition("</style>")[0]
    path = tmp_path / "page.html"
    body = lines + mathml(r"\sqrt{x + 1}")
    page = f'<!DOCTYPE html><meta charset=utf-8><style>{style}</style><body style="display:block">{body}'
    path.write_text(page, encoding="utf-8")
    with Browser(program, tmp_path / "profile") as browser:
        browser.open(path, 1600, height=1800)
        assert browser.run("document.fonts.ready.then(f => [...f].map(x => x.status))") == ["loaded"]
        places = browser.run(
            "[...document.querySelectorAll('mover')].map(m => { const r = m.getBoundingClientRect(), "
            "b = m.firstElementChild.getBoundingClientRect(); return [r.x, r.y, r.width, b.y - r.y]; })"
        )
        outer, inner = browser.run(
            "['msqrt', 'msqrt > *'].map(s => document.querySelector(s).getBoundingClientRect().width)"
        )
        browser.screenshot(tmp_path / "page.png")
    assert outer > inner + 5
    ink = plt.imread(tmp_path / "page.png")[..., :3].mean(-1)
    strips = [ink[round(y) - 2 : round(y + max(high, 4)), round(x) : round(x + wide)] for x, y, wide, high in places]
    covered = [(strip < strip.max() - 0.15).any(0).mean() for strip in strips]
    assert min(covered) > 0.65 and max(covered) - min(covered) < 0.12, covered


@pytest.mark.slow
def test_folds_links_and_copying_in_a_browser(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page_of("anti_hebbian"), encoding="utf-8")
    browser.open(path, 1280)
    height = browser.run("document.body.scrollHeight")
    browser.run("document.querySelector('#action > summary').click()")
    assert not browser.run("document.getElementById('action').open")
    assert not browser.run("document.querySelector('#action .formula').checkVisibility()")
    browser.run("document.getElementById('close-all').click()")
    assert browser.run("document.body.scrollHeight") < height / 3
    browser.run("document.querySelector('nav a[href=\"#single-site\"]').click()")
    assert browser.run("new Promise(r => setTimeout(() => r(document.getElementById('single-site').open), 100))")
    assert browser.run("document.getElementById('bulk').open") is False
    copied = browser.run(
        "new Promise(r => { const take = t => { r(t); return Promise.resolve(); }; "
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: take}}); "
        "document.querySelector('#eq-8\\\\.1 .copy').click(); })"
    )
    assert copied == Reader(page_of("anti_hebbian")).equations["single-site"][0]
    assert browser.run("document.querySelector('#eq-8\\\\.1 .copy').textContent") == "copied"
    assert browser.complaints() == []


@pytest.mark.slow
def test_dark_page_is_dark(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page_of("spiked_wigner"), encoding="utf-8")
    colours = []
    for dark in (False, True):
        browser.open(path, 800, dark=dark)
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    light, dark = (sum(map(int, re.findall(r"\d+", c)[:3])) for c in colours)
    assert light > 700 and dark < 120


@pytest.mark.long
@pytest.mark.slow
def test_model_of_a_file_is_named_by_its_file(declared):
    model = load_model(str(declared(NO_PROBE)))
    made = report_of(derive_model(model), {}, (), {})
    assert made.name == "mine" and made.title.startswith("A drifting vector")


@pytest.mark.parametrize(
    ("value", "error", "text"), [(2.49429, 0.041, "2.494 ± 0.041"), (-1234.5, 26.0, "−1234 ± 26"), (0.5, None, "0.5")]
)
def test_numbers_have_the_digits_of_their_errors(value, error, text):
    assert writing._measured(value, error) == text
