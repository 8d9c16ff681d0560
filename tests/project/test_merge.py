"""The three-way merge of lines loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from example_counts import examples
from navarch.project.scaffold.merge import merge

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "no end"]))


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text and two others that insert, remove and replace some of its lines; lines of the user are unlike all others."""
    base = draw(LINES)
    ours, theirs = [], []
    for index, line in enumerate(base):
        mine, other = draw(st.sampled_from(range(6))), draw(st.sampled_from(range(6)))
        ours += [f"user {index}\n"] * (mine in {0, 1}) + [line] * (mine != 1)
        theirs += [f"template {index}\n"] * (other in {0, 1}) + [line] * (other != 1)
    return "".join(base), "".join(ours), "".join(theirs)


@given(TEXTS, TEXTS)
@examples(200)
def test_one_change_is_taken_as_it_is(base: str, changed: str) -> None:
    """Where only one side changed, the result is that side; the same change on both sides counts once."""
    assert merge(base, base, changed) == changed
    assert merge(base, changed, base) == changed
    assert merge(base, changed, changed) == changed


@given(edited())
@examples(300)
def test_lines_of_the_user_stay(texts: tuple[str, str, str]) -> None:
    """The result has every line that the user wrote, in the user's order, and every line that the template brought."""
    base, ours, theirs = texts
    merged = merge(base, ours, theirs)
    if merged is None:
        return
    lines = merged.splitlines()
    assert [line for line in lines if line.startswith("user")] == [
        line for line in ours.splitlines() if line.startswith("user")
    ]
    assert [line for line in lines if line.startswith("template")] == [
        line for line in theirs.splitlines() if line.startswith("template")
    ]


@given(edited())
@examples(300)
def test_merging_twice_is_merging_once(texts: tuple[str, str, str]) -> None:
    """An interrupted update that merges again changes nothing, or reports a conflict."""
    base, ours, theirs = texts
    merged = merge(base, ours, theirs)
    if merged is not None:
        assert merge(base, merged, theirs) in {merged, None}


@given(TEXTS, TEXTS, TEXTS)
@examples(200)
def test_sides_are_equal(base: str, one: str, other: str) -> None:
    """No side is preferred: exchanging them changes nothing."""
    assert merge(base, one, other) == merge(base, other, one)


def test_adjacent_changes_conflict() -> None:
    """What stands next to a change of the other side may belong to it: people decide."""
    assert merge("a\nb\n", "A\nb\n", "a\nB\n") is None
    assert merge("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n"
