"""A bulk translation: an input cut into blocks, workers that translate them, a folder that keeps what is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.bulk.cluster import Blocks, by_ray
from transduce.bulk.folder import BulkFolder
from transduce.bulk.processes import WorkersLostError, by_processes, by_this_process
from transduce.bulk.records import Records
from transduce.bulk.worker import Done, Place, Work
from transduce.bundle import Bundle
from transduce.cluster import Cluster
from transduce.engines.engine import EngineName
from transduce.errors import InputError, TransduceError
from transduce.guards import Glossary
from transduce.processes import cores
from transduce.ranking import check_way_back
from transduce.storage import file_digest, storage_errors

__all__ = ["BulkTranslation", "Progress", "Summary"]

BLOCK = 1000
"""Records of a block: enough that a worker seldom waits, few enough that little is lost with one."""
MOST_ROUNDS = 3
"""Times in a row that what is left may be tried without getting on."""

Progress = Callable[[int, int], None]
"""Called with how many records are done and how many there are; the first time with what was done before."""


@dataclass(frozen=True)
class Summary:
    """What a bulk translation came to."""

    path: Path
    """The file with all translations, in the order of the input."""
    records: int
    resumed: int
    """Records that were done before."""
    warned: int
    """Records with warnings, of those translated now."""


@dataclass(frozen=True, kw_only=True)
class BulkTranslation:
    """A file to be translated into a folder. The same one goes on where it was stopped.

    >>> BulkTranslation(input=path, records=records_of(path), output=Path("out"), bundle=bundle).run()
    """

    input: Path
    records: Records
    output: Path
    bundle: Bundle
    back: Bundle | None = None
    """A model of the other direction that has a say."""
    engine: EngineName = "auto"
    shortlist: bool = False
    to: str | None = None
    beam: int | None = None
    mbr: bool | None = None
    raw: bool = False
    glossary: Path | None = None
    block: int = BLOCK
    """Records that a worker translates at a time."""

    def run(
        self,
        cluster: Cluster = "none",
        workers: int | None = None,
        address: str | None = None,
        progress: Progress = lambda done, of: None,
    ) -> Summary:
        """Translate what has not been translated yet, here or on a cluster; how, need not be the same each time.

        Without `workers`, this process works alone, on a cluster one for each of its cores.
        """
        work = self._work()
        # All is read once before anything is translated: a mistake in the last line is better known now.
        sizes = [block.count for block in self.records.blocks(self.input, self.block)]
        if not sizes:
            raise InputError("there is nothing to translate.", where=str(self.input), remedy="Give another file.")
        folder = BulkFolder(self.output, self.records, self._order(work), sizes)
        with storage_errors(self.output):
            folder.open()
            if folder.complete:
                folder.tidy()
                return Summary(folder.joined, sum(sizes), sum(sizes), 0)
            before = sum(sizes[number] for number in folder.finished())
            progress(before, sum(sizes))
            warned, done = 0, before
            for each in self._rounds(folder, lambda blocks: self._spread(work, blocks, cluster, workers, address)):
                folder.keep(each.number, each.part)
                warned, done = warned + each.warned, done + sizes[each.number]
                progress(done, sum(sizes))
            folder.join()
        return Summary(folder.joined, sum(sizes), before, warned)

    def _rounds(self, folder: BulkFolder, spread: Callable[[Blocks], Iterator[Done]]) -> Iterator[Done]:
        """All blocks that are not finished, once each; what fails is tried again as long as that gets on."""
        idle, reason = 0, ""
        while left := frozenset(range(len(folder.sizes))) - folder.finished():
            if idle == MOST_ROUNDS:
                raise TransduceError(
                    f"{len(left):,} of {len(folder.sizes):,} blocks could not be translated: {reason}.",
                    where=str(self.input),
                    remedy="Put that right, or use fewer --workers, and run the same command: what is done is kept.",
                )
            got_on = False
            try:
                for done in spread(Blocks(self.records, self.input, self.block, left)):
                    if done.mistake is not None:
                        raise done.mistake
                    if done.failure is not None:
                        reason = done.failure
                    else:
                        yield done
                        got_on = True
            except WorkersLostError as error:
                reason = str(error)
            idle = 0 if got_on else idle + 1

    def _spread(
        self, work: Work, blocks: Blocks, cluster: Cluster, workers: int | None, address: str | None
    ) -> Iterator[Done]:
        if cluster == "ray":
            return by_ray(work, workers, address, replace(blocks, path=blocks.path.resolve()))
        if workers is None or workers == 1:
            return by_this_process(replace(work, threads=cores()), blocks)
        return by_processes(replace(work, threads=max(1, cores() // workers)), workers, blocks)

    def _work(self) -> Work:
        options: dict[str, Any] = {"beam": self.beam, "mbr": self.mbr, "guard": not self.raw}
        options |= {"glossary": Glossary.read(self.glossary)} if self.glossary is not None else {}
        back = None
        if self.back is not None:
            check_way_back(self.bundle, self.back, self.to)
            back = Place.of(self.back)
        return Work(self.records, Place.of(self.bundle), back, self.engine, self.shortlist, self.to, options)

    def _order(self, work: Work) -> dict[str, Any]:
        """What must be the same when it is gone on with, by the names of the options."""
        glossary = {"name": self.glossary.name, "digest": file_digest(self.glossary)} if self.glossary else None
        return {
            "input": {"name": self.input.name, "digest": file_digest(self.input)},
            "model": work.model.as_dict(),
            "back": work.back.as_dict() if work.back else None,
            "column": getattr(self.records, "column", None),
            "json": self.records.ending == ".jsonl",
            "to": self.to,
            "engine": self.engine,
            "shortlist": self.shortlist,
            "beam": self.beam,
            "mbr": self.mbr,
            "raw": self.raw,
            "glossary": glossary,
            "block": self.block,
        }
