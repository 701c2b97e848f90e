"""What `progress=True` shows: tqdm's bar if tqdm is installed, else a line on standard error."""

import sys


def bar():
    """A function to call with how much is done, and of how much."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _line
    shown = tqdm(unit_scale=True)

    def tell(done, total):
        shown.total = total or None
        shown.update(done - shown.n)
        if done == total > 0:
            shown.close()

    return tell


def _line(done, total):
    told = f"{done / total:.0%}" if total else f"{done:,}"
    print(f"\r{told}", end="\n" if done == total > 0 else "", file=sys.stderr, flush=True)
