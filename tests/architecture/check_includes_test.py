#!/usr/bin/env python3
"""Plants one breach at a time in a small house and checks that check_includes.py reports it, and nothing when all is well."""
import subprocess
import sys
import tempfile
from pathlib import Path

SOUND = {
    "include/spillway/error.hpp": "#include <string>\n",
    "include/spillway/align.hpp": '#include "spillway/error.hpp"\n',
    "include/spillway/pool.hpp": '#include "spillway/governor.hpp"\n',
    "include/spillway/governor.hpp": "#include <cstdint>\n",
    "lib/base/error.cpp": '#include "spillway/error.hpp"\n',
    "lib/spill/segment.cpp": '#include "base/bytes.hpp"\n#include <unistd.h>\n#include <xxhash.h>\n',
    "lib/pool/seat.cpp": '#include "directory/slot.hpp"\n#include <concurrentqueue/concurrentqueue.h>\n',
    "lib/hts/reader.cpp": "#include <htslib/sam.h>\n",
    "examples/caller/main.cpp": '#include <spillway/pool.hpp>\n#include <htslib/vcf.h>\n#include "window.hpp"\n',
    "bench/align/align.cpp": '#include "align/rival.hpp"\n#include <spillway/align.hpp>\n',
    "bench/align/align/rival.hpp": "#include <vector>\n",
}
# file, the line added to it, what the report must say
BREACHES = [
    ("lib/spill/segment.cpp", '#include "pool/seat.hpp"', "spill may not know pool"),
    ("lib/spill/segment.cpp", '#include "spillway/pool.hpp"', "spill may not know pool"),
    ("lib/base/error.cpp", '#include "telemetry/counter.hpp"', "base may not know telemetry"),
    ("include/spillway/align.hpp", '#include "spillway/pool.hpp"', "align may not know pool"),
    ("include/spillway/error.hpp", "#include <unistd.h>", "public header may not include unistd.h"),
    ("include/spillway/pool.hpp", "#include <concurrentqueue/concurrentqueue.h>", "does not belong in a public header"),
    ("include/spillway/pool.hpp", '#include "pool/seat.hpp"', "public header may not include pool/seat.hpp"),
    ("lib/pool/seat.cpp", "#include <htslib/sam.h>", "htslib/sam.h does not belong in pool"),
    ("lib/hts/reader.cpp", '#include "spillway/align.hpp"', "hts may not know align"),
    ("lib/attic/old.cpp", "#include <vector>", "no room 'attic'"),
    ("include/spillway/misc.hpp", "#include <vector>", "no room 'misc'"),
    ("examples/caller/main.cpp", '#include "pool/seat.hpp"', "not a public header"),
    ("bench/align/align.cpp", '#include "../../lib/pool/seat.hpp"', "not a public header"),
]


def report(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        check = Path(__file__).with_name("check_includes.py")
        done = subprocess.run([sys.executable, check, folder], capture_output=True, text=True)
        return done.returncode, done.stdout


failures = []
if report(SOUND)[0] != 0:
    failures.append("a sound house is refused:\n" + report(SOUND)[1])
for file, line, wanted in BREACHES:
    status, said = report({**SOUND, file: SOUND.get(file, "") + line + "\n"})
    if status != 1 or wanted not in said or len(said.splitlines()) != 1:
        failures.append(f"{file} with {line}: wanted '{wanted}', got exit {status}:\n{said}")
print("\n".join(failures) if failures else f"{len(BREACHES)} planted breaches found")
sys.exit(1 if failures else 0)
