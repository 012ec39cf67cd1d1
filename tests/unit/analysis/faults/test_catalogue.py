"""Every entry of the fault catalogue matches what it is for, and leaves alone what it is not for."""

import re

import pytest

from jobmond.analysis.faults.catalogue import (
    BY_ID,
    FAULTS,
    GENERIC,
    TRIGGERS,
    advice,
    match_exception,
    match_line,
    triggered,
)
from jobmond.analysis.faults.fault import Role, Scope

# The classes of the interface, and `none` for what is no failure.
CLASSES = frozenset(
    [
        "python-exception",
        "cuda-oom",
        "cuda-error",
        "host-oom",
        "nccl-timeout",
        "nan-loss",
        "grad-explosion",
        "sigterm",
        "sigkill",
        "segfault",
        "walltime",
        "node-failure",
        "preempted",
        "disk-full",
        "quota",
        "import-error",
        "missing-file",
        "permission",
        "auth",
        "network",
        "engine-dead",
        "ray-died",
        "judge",
        "sandbox",
        "config-error",
        "container",
        "unschedulable",
        "unknown",
        "none",
    ]
)
YES = [(fault.id, text) for fault in FAULTS for text in fault.yes]
NO = [(fault.id, text) for fault in FAULTS for text in fault.no]


def ways(fault) -> list[bool]:
    """As an exception, as another line, or as both."""
    return {Scope.EXCEPTION: [True], Scope.LINE: [False], Scope.ANY: [True, False]}[fault.scope]


def test_ids_are_unique_and_classes_are_the_interfaces():
    assert len(BY_ID) == len(FAULTS)
    assert {fault.cause for fault in FAULTS} <= CLASSES
    assert all((fault.cause == "none") == (fault.role is Role.BENIGN) for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_an_entry_says_what_to_do_where_it_is_from_and_shows_both_sides(fault):
    assert fault.advice.endswith(".")
    assert fault.source
    assert fault.yes
    assert fault.no or fault is GENERIC
    assert all(BY_ID[other] for other in fault.needs)


@pytest.mark.parametrize(("fault_id", "text"), YES)
def test_what_it_is_for(fault_id, text):
    fault = BY_ID[fault_id]
    assert any(fault.matches(text, exception=way) for way in ways(fault))


@pytest.mark.parametrize(("fault_id", "text"), YES)
def test_no_entry_before_it_takes_its_lines(fault_id, text):
    fault = BY_ID[fault_id]
    found = [match_exception(text) if way else match_line(text)[0] for way in ways(fault)]
    assert fault in found


@pytest.mark.parametrize(("fault_id", "text"), NO)
def test_what_it_is_not_for(fault_id, text):
    fault = BY_ID[fault_id]
    assert not any(fault.matches(text, exception=way) for way in (True, False))


@pytest.mark.parametrize(
    ("fault_id", "text"),
    [
        (fault_id, text)
        for fault_id, text in YES
        if BY_ID[fault_id].scope is not Scope.EXCEPTION and BY_ID[fault_id].role is not Role.BENIGN
    ],
)
def test_a_line_that_matters_holds_a_trigger(fault_id, text):
    assert triggered(text)


def test_needles_of_lines_hold_no_digits():
    for fault in FAULTS:
        if fault.scope is not Scope.EXCEPTION:
            assert not [n for n in fault.needles if re.search(r"\d", n)], fault.id


def test_triggers_are_lower_case_and_few():
    assert [trigger for trigger in TRIGGERS if trigger != trigger.lower()] == []
    assert len(TRIGGERS) <= 60


def test_an_exception_nobody_knows_is_a_python_exception():
    assert match_exception("WobbleError: the wobble broke") is GENERIC
    assert match_line("the wobble is fine") == (None, False)


def test_advice_for_a_class_where_the_entry_is_not_known():
    assert advice("disk-full", "disk-full").startswith("Free space")
    assert advice("gone-entry", "walltime").startswith("Ask for more time")
    assert advice("gone-entry", "no-such-class") == GENERIC.advice
