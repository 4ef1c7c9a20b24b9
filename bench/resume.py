#!/usr/bin/env python3
"""What a journal costs a run that nobody disturbs, and what is left to do after a kill at 90%.

    bench/resume.py FASTA BAM [REPEATS=10] [-- more arguments for spillway-call]

Cost: spillway-call with two threads, without and with --resume, both at once but stopped in turn every 50 ms, so that
whatever else the machine does meets both alike; the ratio of their CPU seconds, its median and the standard error of
its mean (goal: under 1.03). "plain beside itself" says how far that can be trusted.

Resume: a run is killed once its journal has 90% of the bytes of a whole one, and resumed; CPU and wall seconds of the
resumed run beside those of a full run with a journal just before it, less the start-up, a run over an empty region
(goal: at most 0.15). Every VCF must equal the first. Exits 1 where a goal is
missed. SPILLWAY_CALL names the binary, else it is looked for in build/.
"""
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
SLICE = 0.05  # seconds; much longer than a switch costs, much shorter than what disturbs


def binary():
    named = os.environ.get("SPILLWAY_CALL")
    release = TOP / "build/release/examples/caller/spillway-call"
    found = [pathlib.Path(named)] if named else [release, *sorted(TOP.glob("build/*/examples/caller/spillway-call"))]
    for call in found:
        if os.access(call, os.X_OK):
            return str(call)
    sys.exit("no spillway-call: build it, or name it in SPILLWAY_CALL")


class Caller:
    """Runs of spillway-call in a directory of its own."""

    def __init__(self, fasta, bam, more):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.kept = self.directory / "kept"
        self.command = [binary(), "-f", fasta, "--threads", "2", "-v", "0", *more]
        self.bam = bam
        self.first = None

    def output(self, name):
        return self.directory / f"{name}.vcf.gz"

    def start(self, name, journal, region=(), stopped=False):
        command = [*self.command, *region, "-o", str(self.output(name))]
        if journal:
            command += ["--resume", str(self.kept)]
        child = os.fork()
        if child == 0:
            if stopped:
                os.kill(os.getpid(), signal.SIGSTOP)
            os.execv(command[0], [*command, self.bam])
        if stopped:
            os.waitpid(child, os.WUNTRACED)
        return child

    def check(self, name):
        written = self.output(name).read_bytes()
        self.first = self.first or written
        if written != self.first:
            sys.exit(f"{name}: the VCF differs from the first")

    def run(self, name, journal, region=()):
        """CPU and wall seconds."""
        begun = time.monotonic()
        _, status, used = os.wait4(self.start(name, journal, region), 0)
        wall = time.monotonic() - begun
        if status != 0:
            sys.exit(f"{name}: spillway-call failed")
        if not region:
            self.check(name)
        return used.ru_utime + used.ru_stime, wall

    def in_turn(self, runs):
        """CPU seconds of each of {name: journal}, which take turns until all have ended."""
        children = {name: self.start(name, journal, stopped=True) for name, journal in runs.items()}
        cpu = {}
        while children:
            for name, child in list(children.items()):
                os.kill(child, signal.SIGCONT)
                end = time.monotonic() + SLICE
                while True:
                    ended, status, used = os.wait4(child, os.WNOHANG)
                    if ended:
                        if status != 0:
                            sys.exit(f"{name}: spillway-call failed")
                        cpu[name] = used.ru_utime + used.ru_stime
                        del children[name]
                        self.check(name)
                        break
                    if time.monotonic() > end and len(children) > 1:
                        os.kill(child, signal.SIGSTOP)
                        break
                    time.sleep(SLICE / 10)
        return cpu

    def journal(self, ended):
        """A descriptor of the journal that the run makes, or None if it ends before."""
        while True:
            for name in sorted(self.kept.glob("journal-*"))[-1:]:
                try:
                    return os.open(name, os.O_RDONLY)
                except FileNotFoundError:
                    pass
            if ended():
                return None
            time.sleep(0.001)

    def kill_at(self, bytes_of_journal):
        """Whether the run was killed once its journal was as long, rather than ended before."""
        child = self.start("killed", True)
        status = []

        def ended():
            if not status:
                who, how = os.waitpid(child, os.WNOHANG)
                status.extend([how] if who else [])
            return bool(status)

        file = self.journal(ended)
        while not ended() and os.fstat(file).st_size < bytes_of_journal:
            time.sleep(0.001)
        if file is not None:
            os.close(file)
        if not status:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return not status and any(self.kept.glob("journal-*"))

    def journal_bytes(self):
        """Of a whole run: the file outlives its name while we hold it."""
        child = self.start("whole", True)
        file = self.journal(lambda: False)
        os.waitpid(child, 0)
        size = os.fstat(file).st_size
        os.close(file)
        self.check("whole")
        return size


def cost(caller, repeats):
    print("| beside each other | CPU s, median | CPU s, median | ratio, median | standard error |\n|---|---:|---:|---:|---:|")
    dear = False
    for title, journal in (("plain beside itself", False), ("journal over plain", True)):
        pairs = []
        for repeat in range(repeats):
            runs = {"plain": False, "other": journal}
            cpu = caller.in_turn(runs if repeat % 2 else dict(reversed(runs.items())))
            pairs.append((cpu["plain"], cpu["other"]))
        ratios = [other / plain for plain, other in pairs]
        error = statistics.stdev(ratios) / len(ratios) ** 0.5
        print(f"| {title} | {statistics.median(p for p, _ in pairs):.3f} | {statistics.median(o for _, o in pairs):.3f} "
              f"| {statistics.median(ratios):.3f} | {error:.3f} |", flush=True)
        dear = journal and statistics.median(ratios) >= 1.03
    print(f"(goal of journal over plain: under 1.03: {'MISSED' if dear else 'met'})\n")
    return not dear


def resume(caller, repeats, contig):
    empty = ["-r", f"{contig}:1-1"]
    whole = caller.journal_bytes()
    rows = []
    for _ in range(repeats):
        full = caller.run("full", True)
        start = caller.run("empty", False, empty)
        if caller.kill_at(0.9 * whole):
            again = caller.run("resumed", True)
            rows.append([(again[i] - start[i]) / full[i] for i in range(2)] + [again[0], full[0], start[0]])
    if not rows:
        sys.exit("no run was still going at 90%: give a larger input")
    middle = [statistics.median(column) for column in zip(*rows)]
    print(f"resumed after a kill at 90%, {len(rows)} times: {middle[2]:.3f} CPU s, a full run {middle[3]:.3f}, start-up "
          f"{middle[4]:.3f}; beyond start-up, of a full run: CPU {middle[0]:.3f}, wall {middle[1]:.3f}, "
          f"most CPU {max(row[0] for row in rows):.3f} (goal: at most 0.15 each: {'met' if max(middle[:2]) <= 0.15 else 'MISSED'})")
    return max(middle[:2]) <= 0.15


def main():
    own, more = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, more = own[:at], own[at + 1:]
    if len(own) not in (2, 3):
        sys.exit(__doc__)
    fasta, bam, repeats = own[0], own[1], int(own[2]) if len(own) > 2 else 10
    caller = Caller(fasta, bam, more)
    try:
        caller.run("warm", False)  # files are in the page cache from here on
        met = [cost(caller, max(repeats, 2)),
               resume(caller, repeats, pathlib.Path(fasta + ".fai").read_text().split("\t")[0])]
    finally:
        shutil.rmtree(caller.directory)
    sys.exit(0 if all(met) else 1)


main()
