"""The scheduler selects the best of several nodes, and preempts pods of lower priority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cluster.controllers.scheduler_objects import Table, node, pod
from navarch.cluster.controllers.pod_info import PodInfo
from navarch.cluster.controllers.scheduling.preemption import make_room, no_room_message

WEB = {"app": "web"}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def term(key: str = HOSTNAME, **labels: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels or WEB}}


def spread(key: str, when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": WEB}, **more}


def zones(*names: str) -> Table:
    return Table(*(node(f"n{number}", labels={ZONE: name}) for number, name in enumerate(names)))


def test_emptier_node_is_better() -> None:
    """By what pods ask for."""
    table = Table(node("n1"), node("n2"))
    table.put(pod(cpu="2"), "n1")
    assert table.place(pod(cpu="1")) == "n2"


def test_pods_of_one_controller_are_spread() -> None:
    """Without being asked to, and over zones before nodes."""
    table = zones("a", "a", "b")
    found = [table.place(pod(owner="set", labels=WEB)) for _ in range(6)]
    places = Counter({"n0": "a", "n1": "a", "n2": "b"}[each] for each in found)
    assert places["b"] >= 2
    assert max(Counter(found).values()) <= 3


def test_spread_counts_domains_that_are_empty() -> None:
    """A zone without pods is the least, one that the pod cannot use does not count."""
    table = zones("a", "b")
    table.put(pod(labels=WEB), "n0")
    assert table.place(pod(labels=WEB, topologySpreadConstraints=[spread(ZONE)])) == "n1"
    limited = pod(labels=WEB, topologySpreadConstraints=[spread(ZONE)], nodeSelector={ZONE: "a"})
    assert table.place(limited) == "n0"


def test_spread_wants_enough_domains() -> None:
    """With fewer than asked for, the least is taken to be none."""
    table = zones("a", "b")
    for name in ("n0", "n1"):
        table.put(pod(labels=WEB), name)
    refused = table.refuse(pod(labels=WEB, topologySpreadConstraints=[spread(ZONE, minDomains=3)]))
    assert refused.message().startswith(
        "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."
    )


def test_nodes_without_the_label_cannot_be_used() -> None:
    """They are in no domain."""
    table = Table(node("n1"))
    refused = table.refuse(pod(labels=WEB, topologySpreadConstraints=[spread(ZONE)]))
    assert "(missing required label)" in refused.message()


def test_soft_spread_only_prefers() -> None:
    """A crowded domain is taken if there is no other."""
    table = zones("a", "b")
    wish = [spread(ZONE, "ScheduleAnyway")]
    for _ in range(3):
        table.put(pod(labels=WEB), "n0")
    assert table.place(pod(labels=WEB, topologySpreadConstraints=wish)) == "n1"
    assert table.place(pod(labels=WEB, topologySpreadConstraints=wish, nodeSelector={ZONE: "a"})) == "n0"


def test_affinity_needs_the_others_near() -> None:
    """In the same domain, not only on the same node; nobody near is nobody at all."""
    table = zones("a", "a", "b")
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE, app="db")]}}
    assert "didn't match pod affinity rules" in table.refuse(pod(affinity=near)).message()
    table.put(pod(labels={"app": "db"}), "n0")
    assert {table.place(pod(affinity=near)) for _ in range(4)} <= {"n0", "n1"}


def test_pods_that_want_each_other_begin_anywhere() -> None:
    """The first of them matches its own term."""
    table = zones("a", "b")
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE)]}}
    first = table.place(pod(labels=WEB, affinity=together))
    assert table.place(pod(labels=WEB, affinity=together)) == first


def test_anti_affinity_holds_both_ways() -> None:
    """For whoever wants it, and for whoever comes later and does not."""
    table = Table(node("n1"), node("n2"))
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term()]}}
    first = table.place(pod(labels=WEB, affinity=apart))
    second = table.place(pod(labels=WEB))
    assert {first, second} == {"n1", "n2"}
    refused = table.refuse(pod(labels=WEB, affinity=apart)).message()
    assert refused == "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


def test_anti_affinity_ends_with_the_pod() -> None:
    """What keeps others away keeps nobody away when it is gone."""
    table = Table(node("n1"))
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term()]}}
    first = table.put(pod(labels=WEB, affinity=apart), "n1")
    table.refuse(pod(labels=WEB))
    table.world.remove_pod(first.uid)
    assert table.place(pod(labels=WEB)) == "n1"


def test_preferred_affinity_of_both_sides_counts() -> None:
    """What is there may like a newcomer, and the newcomer what is there."""
    table = Table(node("n1"), node("n2"))
    like = [{"weight": 100, "podAffinityTerm": term(app="db")}]
    table.put(pod(labels={"app": "db"}), "n1")
    likes = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": like}}
    assert table.place(pod(affinity=likes)) == "n1"
    other = Table(node("n1"), node("n2"))
    other.put(pod(affinity=likes), "n2")
    assert other.place(pod(labels={"app": "db"})) == "n2"


def test_least_important_pods_make_room() -> None:
    """As few as possible, of the lowest priority, and nobody of the same one."""
    table = Table(node("n1", room={"cpu": "2"}), node("n2", room={"cpu": "2"}))
    low = table.put(pod("low", cpu="1", priority=1), "n1")
    table.put(pod("middle", cpu="1", priority=5), "n1")
    table.put(pod("high", cpu="2", priority=10), "n2")
    vip = pod("vip", cpu="1", priority=10)
    eviction = make_room(table.world, table.chooser, vip, table.refuse(vip))
    assert eviction is not None
    assert (eviction.node, [victim.uid for victim in eviction.victims]) == ("n1", [low.uid])
    assert table.world.pod(low.uid) is not None


def test_budgets_are_kept_to_where_that_is_possible() -> None:
    """A node where nobody is kept by a budget is better, even if somebody more important has to leave it."""
    table = Table(node("n1", room={"cpu": "2"}), node("n2", room={"cpu": "1"}))
    kept = table.put(pod("kept", cpu="1", priority=1), "n1")
    table.put(pod("other", cpu="1", priority=3), "n1")
    table.put(pod("third", cpu="1", priority=5), "n2")
    vip = pod("vip", cpu="1", priority=10)

    def violated(pods: Iterable[PodInfo]) -> set[str]:
        return {each.uid for each in pods} & {kept.uid}

    eviction = make_room(table.world, table.chooser, vip, table.refuse(vip), violated)
    assert eviction is not None
    assert [victim.key.name for victim in eviction.victims] == ["other"]
    assert eviction.violations == 0


def test_nobody_leaves_where_it_would_not_help() -> None:
    """For a node that is too small, or for a pod that may not preempt."""
    table = Table(node("n1", room={"cpu": "1"}))
    table.put(pod(cpu="1", priority=1), "n1")
    large = pod(cpu="2", priority=10)
    refused = table.refuse(large)
    assert make_room(table.world, table.chooser, large, refused) is None
    assert "1 Preemption is not helpful for scheduling" in no_room_message(refused)
    modest = pod(cpu="1", priority=10, preemptionPolicy="Never")
    assert make_room(table.world, table.chooser, modest, table.refuse(modest)) is None


def test_room_that_was_made_is_kept() -> None:
    """Those of lower priority do not take it; those of higher do."""
    table = Table(node("n1", room={"cpu": "1"}))
    vip = pod("vip", cpu="1", priority=10)
    table.world.nominate(vip, "n1")
    assert table.refuse(pod(cpu="1", priority=1)).message().startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert table.place(vip) == "n1"
    table.world.unnominate(vip.uid)
    assert not table.world.nominated


def test_node_that_changes_keeps_its_pods() -> None:
    """Labels and room are new, what is on it is not; a node that is gone takes nothing."""
    table = Table(node("n1", room={"cpu": "1"}))
    table.put(pod(cpu="1"), "n1")
    table.refuse(pod(cpu="1"))
    table.world.set_node(node("n1", room={"cpu": "2"}))
    assert table.place(pod(cpu="1")) == "n1"
    table.refuse(pod(cpu="1"))
    table.world.remove_node("n1")
    assert table.refuse(pod()).message() == "no nodes available to schedule pods"
