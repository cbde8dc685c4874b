"""What the tests of 3D share: a film through its stages, cut into chunks, with depth invented from light."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.engines.stub import StubEngine
from rushes.media.stereo.depth import Grade
from rushes.stages.depth import Depth
from rushes.stages.develop import Develop
from rushes.stages.grade import DepthGrade
from rushes.stages.join import Join
from rushes.stages.port import Input, OutputDraft
from rushes.stages.probe import Probe
from rushes.stages.shots import Shots
from rushes.stages.stereo import Stereo
from tests.unit.film_work import FilmWork, chunks


@dataclass
class Made:
    work: FilmWork
    film: OutputDraft

    def path(self, folder: Path) -> Path:
        """The joined film as a file."""
        return self.work.export(self.film, folder) / Path(str(self.film.artifacts[0].publish)).name

    @property
    def pieces(self) -> list[Input]:
        return self.work.made["stereo.stereo"]

    @property
    def grades(self) -> list[Grade]:
        return [Grade(**row) for row in self.work.made["grade.grade"][0].json("grade.json")["shots"]]


def in_3d(film: Path, scratch: Path, seconds: int = 60, **options: Mapping[str, JSON]) -> Made:
    """A film in 3D, made in chunks of so many seconds."""
    work = FilmWork(film, scratch, engine=StubEngine(), models={"depth": "stub"})
    work.run(Probe())
    spans: list[Span | None] = [*chunks(work.facts, seconds)] if work.facts.video else [None]
    for span in spans:
        work.run(Develop(), span, wanted=["frames", "metrics"])
    work.run(Shots())
    packs = work.made["develop.frames"]
    for span, pack in zip(spans, packs, strict=True):
        work.made["develop.frames"] = [pack]
        work.run(Depth(), span, options=options.get("depth"))
    work.run(DepthGrade(), options=options.get("grade"))
    for span in spans:
        work.run(Stereo(), span, options=options.get("stereo"))
    return Made(work, work.run(Join())["film"])
