"""Every code of damage has words of its own, and a key tells all that was counted."""

from __future__ import annotations

import itertools

import pytest

from traceanalyzer.damage_text import damage_words, note_sentence, words_of_key
from traceanalyzer.trace.file_faults import FileFault, FileNote
from traceanalyzer.trace.row_faults import Damage, FaultyRow, RowFault, damage_of

EVERY = [
    Damage(fault, row, start_used, limit)
    for fault, row, start_used, limit in itertools.product(RowFault, (None, *FaultyRow), (False, True), (0, 64))
]


def test_a_key_tells_its_damage_and_has_words():
    for damage in EVERY:
        assert damage_of(damage.key()) == damage
        assert words_of_key(damage.key()) == damage_words(damage) != damage.key()


def test_different_faults_have_different_words():
    assert len({damage_words(Damage(fault, FaultyRow.KERNEL)) for fault in RowFault}) == len(RowFault)
    assert len({damage_words(Damage(RowFault.LONG, row)) for row in FaultyRow}) == len(FaultyRow)


@pytest.mark.parametrize(
    "key",
    ["", ":", "kernel", "kernel:", "kernel:lost", "moon:long", "kernel:long:12:3", "long:" + "9" * 5_000, "²:long"],
)
def test_a_key_that_is_none_is_shown_as_it_is(key):
    assert damage_of(key) is None and words_of_key(key) == key


@pytest.mark.parametrize("fault", FileFault)
def test_every_fault_of_a_file_is_a_sentence_with_its_numbers(fault):
    told = note_sentence(FileNote(fault, 70, 4096, ("a", "b", "c")))
    assert "{" not in told
    assert note_sentence(FileNote(fault, 71, 4096, ("a", "b", "c"))) == told.replace("70", "71")
