"""The chart of the site is the one that today's compressors give."""

from tools.cards import PICTURE, digest


def test_the_picture_holds_todays_numbers():
    assert digest().encode() in PICTURE.read_bytes(), "run python -m tools.cards"
