"""Runs a command and prints the largest memory that it takes, in MB: all that is resident (VmHWM), and what is not of files.

    python3 examples/benches/memory.py target/release/generate --device cpu --prompt hi --max-new-tokens 1 --quiet

Pages of mapped files are resident as long as there is room, and belong to every process that maps the file; the rest ("not of files")
is the program's own. It is sampled every 2 ms, so a peak that is shorter may be missed; VmHWM is the kernel's own count.
"""

import subprocess
import sys
import time


def status(pid):
    """Fields of /proc/PID/status in kB; none when the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            pairs = (line.split(":", 1) for line in lines)
            return {key: int(value.split()[0]) for key, value in pairs if key in ("VmHWM", "RssAnon", "RssShmem")}
    except (FileNotFoundError, ProcessLookupError):
        return {}


child = subprocess.Popen(sys.argv[1:])
resident = own = 0
while child.poll() is None:
    now = status(child.pid)
    resident = max(resident, now.get("VmHWM", 0))
    own = max(own, now.get("RssAnon", 0) + now.get("RssShmem", 0))
    time.sleep(0.002)
print(f"VmHWM {resident * 1024 / 1e6:.0f} MB, not of files {own * 1024 / 1e6:.0f} MB", file=sys.stderr)
sys.exit(child.returncode)
