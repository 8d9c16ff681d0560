"""The judge: asks peers the questions whose answers `make test` replays, and compares them with the recorded verdicts.

A referee is a program of somebody else that knows the right answer: kube-apiserver, or Go with Kubernetes' own types. A
recording is a list of questions to one referee, with the files that hold its verdicts. `python -m judge` puts every question
again and prints the verdicts that have changed; `--record` writes those. CONTRIBUTING.md says how to add a recording.
"""

from __future__ import annotations

from judge.recording import Recording, Verdicts
from judge.referees import GO, HELM, KUBE_APISERVER, SHELL, Go, Helm, Referee
from judge.steady import without_chance

__all__ = ["GO", "HELM", "KUBE_APISERVER", "SHELL", "Go", "Helm", "Recording", "Referee", "Verdicts", "without_chance"]
