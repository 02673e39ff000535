"""Translate the LaTeX of this project into MathML.

The mathematics is written once, as LaTeX, and a page renders the same LaTeX that it lets a reader copy. A formula
becomes a row of pieces, one per term, so that a page can break a long sum to fit its width.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from html import escape

from derive.errors import DeriveError
from derive.printing.names import GREEK

ALIGNED = re.compile(r"\\begin\{aligned\}((?:(?!\\begin\{aligned\}).)*)\\end\{aligned\}", re.DOTALL)
MANY = 2
"""Signs from which a sum in brackets may be broken inside them."""
TALL = re.compile("<mfrac|<munder|<mtable|[∫∑∏]")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)

_GREEK_LETTERS = {name: chr(0x3B1 + k) for k, name in enumerate(
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau "
    "upsilon varphi chi psi omega".split()
)}  # fmt: skip
_GREEK_CAPITALS = {
    name: letter
    for name, letter in zip(
        "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split(), "ΓΔΘΛΞΠΣΥΦΨΩ", strict=True
    )
}
LETTERS = {
    **_GREEK_LETTERS,
    **_GREEK_CAPITALS,
    "epsilon": "ϵ",
    "vartheta": "ϑ",
    "phi": "ϕ",
    "infty": "∞",
    "ell": "ℓ",
    "hbar": "ℏ",
    "emptyset": "∅",
}
UPRIGHT = frozenset(_GREEK_CAPITALS) | {"infty", "emptyset"}
FUNCTIONS = frozenset(
    "tanh sinh cosh coth sin cos tan cot sec csc arcsin arccos arctan log ln exp lim max min sup inf det arg gcd "
    "deg dim ker".split()
)
RELATIONS = {
    "=": "=", "<": "<", ">": ">", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "ni": "∋",
    "in": "∈", "leftarrow": "←", "rightarrow": "→", "to": "→", "sim": "∼", "approx": "≈", "equiv": "≡",
    "propto": "∝",
}  # fmt: skip
BINARY = {
    "+": "+", "-": "−", "cdot": "⋅", "times": "×", "pm": "±", "mp": "∓", "circ": "∘", "wedge": "∧", "vee": "∨",
    "bmod": "mod", "setminus": "∖", "cup": "∪", "cap": "∩",
}  # fmt: skip
ORDINARY = {
    "partial": "∂", "nabla": "∇", "top": "⊤", "prime": "′", "dots": "…", "ldots": "…", "cdots": "⋯", "neg": "¬",
    "dagger": "†", "star": "⋆", "ast": "∗", "bullet": "∙", "perp": "⊥", "parallel": "∥", "flat": "♭", "sharp": "♯",
    "!": "!", "/": "/", "*": "∗", "%": "%",
}  # fmt: skip
BIG = {"sum": "∑", "prod": "∏", "int": "∫"}
SPACES = {"\\,": 0.1667, "\\:": 0.2222, "\\;": 0.2778, "\\!": -0.1667, "\\ ": 0.3333, "~": 0.3333,
          "\\quad": 1.0, "\\qquad": 2.0}  # fmt: skip
FENCES = {
    "(": "(", ")": ")", "[": "[", "]": "]", "|": "|", ".": "", "\\{": "{", "\\}": "}", "\\langle": "⟨",
    "\\rangle": "⟩", "\\lfloor": "⌊", "\\rfloor": "⌋", "\\lceil": "⌈", "\\rceil": "⌉", "\\lvert": "|",
    "\\rvert": "|", "\\vert": "|", "/": "/",
}  # fmt: skip
OPENING = frozenset(("(", "[", "\\{", "\\langle", "\\lfloor", "\\lceil", "\\lvert"))
CLOSING = frozenset((")", "]", "\\}", "\\rangle", "\\rfloor", "\\rceil", "\\rvert"))
SIZES = {"big": "120%", "bigl": "120%", "bigr": "120%", "Big": "180%", "Bigl": "180%", "Bigr": "180%"}
ACCENTS = {"hat": "^", "widehat": "ˆ", "bar": "¯", "overline": "¯", "tilde": "~", "widetilde": "˜",
           "dot": "˙", "ddot": "¨", "check": "ˇ", "breve": "˘", "vec": "→"}  # fmt: skip
ALPHABETS = {"mathcal": "SCRIPT", "mathscr": "SCRIPT", "mathbb": "DOUBLE-STRUCK", "mathfrak": "FRAKTUR",
             "mathsf": "SANS-SERIF", "mathtt": "MONOSPACE"}  # fmt: skip
WRAPPERS = {"bmatrix": ("[", "]"), "pmatrix": ("(", ")"), "matrix": ("", ""), "smallmatrix": ("", ""),
            "array": ("", ""), "cases": ("{", "")}  # fmt: skip
assert set(GREEK) <= set(LETTERS), "every Greek name of a declaration has a letter"


class UnknownMathematics(DeriveError):
    """Raised for LaTeX that has no translation."""


@dataclass(frozen=True)
class MathPiece:
    """A piece of MathML with its class.

    The classes ord, open and close are those of TeX. After rel a line may end; with bin a line may begin. sign stands
    in front of a term, dot is a product that is never broken, big is a sum or an integral, and cell and line belong to
    a table.
    """

    kind: str
    xml: str


def mathml_pieces(source: str) -> tuple[str, ...]:
    """Return the formula as one or more `math` elements, one per term, to be set side by side or below each other."""
    whole = ALIGNED.fullmatch(source.strip())
    rows: list[list[MathPiece]] = [[]]
    depth = 0
    for atom in _FormulaReader(whole[1] if whole else source).formula():
        if atom.kind in ("cell", "line"):
            continue
        level = depth == 0 and _has_ink(rows[-1])
        factor = atom.kind == "open" and level and "mathsize" in atom.xml and _ends_a_factor(rows[-1])
        if factor or (level and (atom.kind == "bin" or (atom.kind == "rel" and len(rows) > 1))):
            rows.append([])  # a relation behind a sum goes with what follows, any other with what it ends
        if "mathsize" not in atom.xml:  # brackets of a fixed size may stand on different lines
            depth += {"open": 1, "close": -1}.get(atom.kind, 0)
        rows[-1].append(atom)
        if level and atom.kind == "rel" and len(rows) == 1:
            rows.append([])
    return tuple(f'<math displaystyle="true">{_row(_without_outer_space(row))}</math>' for row in rows if _has_ink(row))


def mathml(source: str) -> str:
    """Return the formula as one `math` element for a line of text."""
    return f"<math>{_row([a for a in _FormulaReader(source).formula() if a.kind not in ('cell', 'line')])}</math>"


def _has_ink(row: list[MathPiece]) -> bool:
    return any(atom.kind != "space" for atom in row)


def _ends_a_factor(row: list[MathPiece]) -> bool:
    """Return whether a row ends with a closing bracket of fixed size."""
    last = next(atom for atom in reversed(row) if atom.kind != "space")
    return last.kind == "ord" and "mathsize" in last.xml


def _without_outer_space(row: list[MathPiece]) -> list[MathPiece]:
    while row and row[0].kind == "space":
        row = row[1:]
    while row and row[-1].kind == "space":
        row = row[:-1]
    return row


def _row(atoms: list[MathPiece]) -> str:
    inner = "".join(atom.xml for atom in atoms)
    return inner if len(atoms) == 1 else f"<mrow>{inner}</mrow>"


class _FormulaReader:
    """A recursive-descent parser of one formula; each instance is used once."""

    def __init__(self, source: str):
        self.source = source
        self.tokens = TOKEN.findall(source)
        self.place = 0
        self.tables = 0

    def formula(self) -> list[MathPiece]:
        atoms = self._atoms(())
        if self.place < len(self.tokens):
            raise self._unknown(self.tokens[self.place])
        return atoms

    def _unknown(self, what: str) -> UnknownMathematics:
        return UnknownMathematics(f"{what} in {self.source[:60]!r} has no MathML; show the LaTeX instead")

    # -- tokens

    def _peek(self) -> str:
        while self.place < len(self.tokens) and self.tokens[self.place].isspace():
            self.place += 1
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.place += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise self._unknown(f"a missing {token}")

    def _braced_text(self) -> str:
        """Read the letters between braces literally."""
        self._expect("{")
        depth, start = 1, self.place
        while depth:
            if self.place >= len(self.tokens):
                raise self._unknown("an open brace")
            depth += {"{": 1, "}": -1}.get(self.tokens[self.place], 0)
            self.place += 1
        return "".join(self.tokens[start : self.place - 1])

    # -- lists of atoms

    def _atoms(self, ends: tuple[str, ...]) -> list[MathPiece]:
        """Read everything up to one of the end tokens, which is not consumed."""
        atoms: list[MathPiece] = []
        while self._peek() and self._peek() not in ends:
            if self._peek() in ("}", "\\right", "\\end"):
                break
            new = self._scripted(atoms)
            atoms += new
        return atoms

    def _scripted(self, before: list[MathPiece]) -> list[MathPiece]:
        """Read the next atom with its indices; a group that only encloses others gives several atoms."""
        atoms = [] if self._peek() in ("^", "_") else self._atom(before)
        low, high, primes = None, "", ""
        while self._peek() in ("^", "_", "'"):
            token = self._take()
            if token == "'":
                primes += "′"
            elif token == "_":
                low = self._argument()
            else:
                high = self._argument()
        if low is None and not high and not primes:
            return atoms
        base = atoms[-1] if atoms else MathPiece("ord", "<mrow></mrow>")
        if primes:  # at the size of the letter: raised once more they are hardly seen
            base = replace(base, xml=f'<mrow>{base.xml}<mo form="postfix" lspace="0" rspace="0">{primes}</mo></mrow>')
        return [*atoms[:-1], replace(base, xml=_with_indices(base, low, high))]

    def _argument(self) -> str:
        """Read the argument of a command or an index: a group in braces, or one atom."""
        if self._peek() != "{":
            return _row(self._atom([]))
        self._take()
        atoms = self._atoms(("}",))
        self._expect("}")
        return _row(atoms)

    def _atom(self, before: list[MathPiece]) -> list[MathPiece]:
        token = self._take()
        name = token[1:] if token.startswith("\\") and token[1:].isalpha() else token
        if token == "{":
            atoms = self._atoms(("}",))
            self._expect("}")
            return [MathPiece("ord", _row(atoms))]
        if token == "&":
            return [MathPiece("cell", "")]
        if token == "\\\\":
            return [MathPiece("line", "")]
        if token in SPACES:
            return [MathPiece("space", f'<mspace width="{SPACES[token]:g}em"/>')]
        if token[0].isdigit():
            return [MathPiece("ord", f"<mn>{token}</mn>")]
        if token.isalpha():
            return [MathPiece("ord", f"<mi>{escape(token)}</mi>")]
        if token in OPENING or token in CLOSING:
            kind = "open" if token in OPENING else "close"
            return [MathPiece(kind, f'<mo stretchy="false">{escape(FENCES[token])}</mo>')]
        if token == "|":
            return [MathPiece("ord", '<mo stretchy="false" lspace="0" rspace="0">|</mo>')]
        if token in (",", ";", ":", "."):
            return [MathPiece("ord", f'<mo separator="true" lspace="0" rspace="0.1667em">{token}</mo>')]
        if name in LETTERS and token != name:
            upright = ' mathvariant="normal"' if name in UPRIGHT else ""
            return [MathPiece("ord", f"<mi{upright}>{LETTERS[name]}</mi>")]
        if name in FUNCTIONS and token != name:
            return [MathPiece("ord", f"<mi>{name}</mi>{self._gap()}")]
        if name in RELATIONS and (token != name or not name.isalpha()):
            return [MathPiece("rel", f"<mo>{escape(RELATIONS[name])}</mo>")]
        if name in BINARY and (token != name or not name.isalpha()):
            return [self._binary(BINARY[name], before)]
        if name in BIG and token != name:
            return [MathPiece("big", f"<mo>{BIG[name]}</mo>")]
        if name in ORDINARY and (token != name or not name.isalpha()):
            return [MathPiece("ord", f'<mo form="prefix" lspace="0" rspace="0">{ORDINARY[name]}</mo>')]
        command = getattr(self, f"_command_{name}", None) if token != name else None
        if command is not None:
            return [command()]
        if token == "\\left":
            return self._left()
        if name in ACCENTS:
            return [self._accent(name)]
        if name in ALPHABETS:
            return [self._alphabet(name)]
        if name in SIZES:
            fence = self._fence()
            kind = "open" if name.endswith("l") else "ord"
            size = f'stretchy="false" mathsize="{SIZES[name]}" lspace="0" rspace="0"'
            return [MathPiece(kind, f"<mo {size}>{escape(fence)}</mo>")]
        if token in ("\\_", "\\%", "\\&", "\\#", "\\$"):
            return [MathPiece("ord", f"<mtext>{escape(token[1])}</mtext>")]
        raise self._unknown(token)

    def _gap(self) -> str:
        """Return a thin space between the name of a function and an argument without brackets."""
        following = self._peek()
        bracketed = following in ("(", "\\left", "{", "^", "_", "")
        return "" if bracketed else '<mspace width="0.1667em"/>'

    def _binary(self, sign: str, before: list[MathPiece]) -> MathPiece:
        """Return a sign between two terms, or in front of the first."""
        skipped = ("space",) if self.tables else ("space", "cell", "line")
        left = next((a for a in reversed(before) if a.kind not in skipped), None)
        if left is None or left.kind in ("rel", "bin", "sign", "dot", "open", "big", "cell", "line"):
            return MathPiece("sign", f'<mo form="prefix" lspace="0" rspace="0">{sign}</mo>')
        product = sign in ("⋅", "×", "∘", "mod")
        gap = "0.1667em" if product else "0.2222em"
        return MathPiece("dot" if product else "bin", f'<mo form="infix" lspace="{gap}" rspace="{gap}">{sign}</mo>')

    def _fence(self) -> str:
        token = self._take()
        if token not in FENCES:
            raise self._unknown(f"the bracket {token}")
        return FENCES[token]

    # -- commands

    def _accent(self, name: str) -> MathPiece:
        wide = "true" if name.startswith(("wide", "over")) else "false"
        body = self._argument()
        return MathPiece("ord", f'<mover accent="true">{body}<mo stretchy="{wide}">{ACCENTS[name]}</mo></mover>')

    def _command_frac(self) -> MathPiece:
        return MathPiece("ord", f"<mfrac>{self._argument()}{self._argument()}</mfrac>")

    def _command_sqrt(self) -> MathPiece:
        if self._peek() == "[":
            self._take()
            root = _row(self._atoms(("]",)))
            self._expect("]")
            return MathPiece("ord", f"<mroot>{self._argument()}{root}</mroot>")
        return MathPiece("ord", f"<msqrt>{self._argument()}</msqrt>")

    def _left(self) -> list[MathPiece]:
        """Read the contents of \\left ... \\right: one atom, or several if the contents are a long sum of low height,
        which may be broken.
        """
        opening = self._fence()
        atoms = [a for a in self._atoms(("\\right",)) if a.kind not in ("cell", "line")]
        self._expect("\\right")
        closing = self._fence()
        body = _row(atoms)
        if sum(atom.kind == "bin" for atom in atoms) < MANY or TALL.search(body):
            return [MathPiece("ord", _fenced(opening, body, closing))]
        before, after = (f'<mo form="{form}" stretchy="false">{escape(f)}</mo>'
                         for form, f in (("prefix", opening), ("postfix", closing)))  # fmt: skip
        return [MathPiece("ord", before), *atoms, MathPiece("ord", after)]

    def _word(self) -> str | None:
        """Read the letters between braces; None, with nothing consumed, if there is anything else."""
        start = self.place
        written = self._braced_text() if self._peek() == "{" else "\\"
        if re.search(r"[\\{}^_']", re.sub(r"\\[_%&#$]", "", written)):
            self.place = start
            return None
        return re.sub(r"\\([_%&#$])", r"\1", written)

    def _alphabet(self, name: str) -> MathPiece:
        word = self._word()
        if word is None or not word.isascii() or not word.isalnum():
            raise self._unknown(f"\\{name}")
        return MathPiece("ord", f"<mi>{''.join(styled(letter, ALPHABETS[name]) for letter in word)}</mi>")

    def _command_boldsymbol(self) -> MathPiece:
        return MathPiece("ord", f'<mrow style="font-weight:bold">{self._argument()}</mrow>')

    _command_bm = _command_boldsymbol

    def _command_underline(self) -> MathPiece:
        return MathPiece("ord", f'<munder>{self._argument()}<mo stretchy="true">_</mo></munder>')

    def _command_mathrm(self) -> MathPiece:
        word = self._word()
        if word is None:
            return MathPiece("ord", self._argument())
        upright = ' mathvariant="normal"' if len(word) == 1 else ""
        return MathPiece("ord", f"<mi{upright}>{escape(word)}</mi>")

    def _command_operatorname(self) -> MathPiece:
        word = self._braced_text()
        return MathPiece("ord", f"<mi>{escape(word)}</mi>{self._gap()}")

    def _command_mathbf(self) -> MathPiece:
        word = self._word()
        if word is None:
            return self._command_boldsymbol()
        tag = "mn" if word.isdigit() else "mi"
        upright = ' mathvariant="normal"' if tag == "mi" and len(word) == 1 else ""
        return MathPiece("ord", f'<{tag}{upright} style="font-weight:bold">{escape(word)}</{tag}>')

    def _command_text(self) -> MathPiece:
        words = re.sub(r"\\([_%&#$])", r"\1", self._braced_text())
        if "\\" in words or "$" in words:
            raise self._unknown(words)
        if words.strip() and " " not in words and len(words) > 1:
            return MathPiece("ord", f"<mi>{escape(words)}</mi>")  # a name; mtext would count as space beside a sign
        between = words.startswith(" ") and words.endswith(" ")
        return MathPiece("rel" if between else "ord", f"<mtext>{escape(words).replace(' ', '&#xA0;')}</mtext>")

    def _command_begin(self) -> MathPiece:
        kind = self._braced_text()
        if kind == "array" and self._peek() == "{":
            self._braced_text()
        self.tables += kind != "aligned"
        atoms = self._atoms(())
        self.tables -= kind != "aligned"
        self._expect("\\end")
        if self._braced_text() != kind:
            raise self._unknown(f"the end of {kind}")
        if kind == "aligned":
            return MathPiece("ord", _row([a for a in atoms if a.kind not in ("cell", "line")]))
        if kind not in WRAPPERS:
            raise self._unknown(kind)
        lines: list[list[list[MathPiece]]] = [[[]]]
        for atom in atoms:
            if atom.kind == "line":
                lines.append([[]])
            elif atom.kind == "cell":
                lines[-1].append([])
            else:
                lines[-1][-1].append(atom)
        lines = [line for line in lines if any(_has_ink(cell) for cell in line)]
        rows = "".join("<mtr>" + "".join(f"<mtd>{_row(cell)}</mtd>" for cell in line) + "</mtr>" for line in lines)
        shown = ' class="cases"' if kind == "cases" else ""
        return MathPiece("ord", _fenced(WRAPPERS[kind][0], f"<mtable{shown}>{rows}</mtable>", WRAPPERS[kind][1]))


def styled(letter: str, style: str) -> str:
    """Return a letter or digit in a mathematical alphabet."""
    kind = "DIGIT" if letter.isdigit() else "CAPITAL" if letter.isupper() else "SMALL"
    name = unicodedata.name(letter).rsplit(" ", 1)[-1]
    holes = {"FRAKTUR": "BLACK-LETTER"}  # a few letters are older than their alphabets
    for full in (f"MATHEMATICAL {style} {kind} {name}", f"{holes.get(style, style)} {kind} {name}"):
        try:
            return unicodedata.lookup(full)
        except KeyError:
            continue
    return letter


def _fenced(opening: str, body: str, closing: str) -> str:
    """Return brackets around a body, of fixed size if the body is low, because browsers leave a gap next to
    stretchy brackets."""
    tall = "true" if TALL.search(body) else "false"

    def fence(letter: str, form: str) -> str:
        ways = f'form="{form}" fence="true" stretchy="{tall}" symmetric="true" lspace="0" rspace="0"'
        return f"<mo {ways}>{escape(letter)}</mo>" if letter else ""

    return f"<mrow>{fence(opening, 'prefix')}{body}{fence(closing, 'postfix')}</mrow>"


def _with_indices(base: MathPiece, low: str | None, high: str) -> str:
    """Return the base with its subscript and superscript; sums carry their limits under and over."""
    over = base.kind == "big" and "∫" not in base.xml
    if low is not None and high:
        tag = "munderover" if over else "msubsup"
        return f"<{tag}>{base.xml}{low}{high}</{tag}>"
    if low is not None:
        tag = "munder" if over else "msub"
        return f"<{tag}>{base.xml}{low}</{tag}>"
    if not high:
        return base.xml
    tag = "mover" if over else "msup"
    return f"<{tag}>{base.xml}{high}</{tag}>"
