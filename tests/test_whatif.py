"""Who pins a level, and what joining hosts cost."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.errors import InputError
from substrate_compat.levels import common_level
from substrate_compat.whatif import Pin, cost_of_adding, pins
from test_levels import BASIS, fleets, levelable
from vectors import amd64, demo_hosts


def test_equal_hosts_pin_a_level_together() -> None:
    hosts = {"b": BASIS, "a": BASIS, "c": BASIS | amd64("avx")}
    assert pins(hosts) == (Pin(("a", "b"), amd64("avx")), Pin(("c",), amd64("")))


def test_equal_hosts_that_are_the_whole_fleet_pin_nothing() -> None:
    assert pins({"a": BASIS, "b": BASIS}) == (Pin(("a", "b"), amd64("")),)


def test_a_name_that_is_already_in_the_fleet_is_refused() -> None:
    with pytest.raises(InputError, match="'a'"):
        cost_of_adding({"a": BASIS}, {"a": BASIS})


@given(fleets)
def test_a_pin_is_what_the_level_gains_without_those_hosts(hosts: dict[str, FeatureSet]) -> None:
    level = common_level(hosts).features
    found = pins(hosts)
    assert sorted(name for pin in found for name in pin.hosts) == sorted(hosts)
    assert [len(pin.gained) for pin in found] == sorted((len(pin.gained) for pin in found), reverse=True)
    for pin in found:
        rest = {name: features for name, features in hosts.items() if name not in pin.hosts}
        if rest:
            assert pin.gained == common_level(rest).features - level
        else:
            assert not pin.gained


@given(fleets, st.text(string.ascii_uppercase, min_size=1), levelable)
def test_the_cost_of_adding_is_what_the_newcomer_pins(
    hosts: dict[str, FeatureSet], name: str, features: FeatureSet
) -> None:
    cost = cost_of_adding(hosts, {name: features})
    assert cost == common_level(hosts).features - features
    if features not in hosts.values():
        assert Pin((name,), cost) in pins({**hosts, name: features})


def test_who_pins_the_level_of_the_demo() -> None:
    hosts = {host.id: host.features for host in demo_hosts().hosts}
    first = pins(hosts)[0]
    assert common_level(
        {name: hosts[name] for name in hosts if name not in first.hosts}
    ).features.names == (tuple(sorted((*common_level(hosts).features.names, *first.gained.names))))
