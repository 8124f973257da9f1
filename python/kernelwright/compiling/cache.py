"""The folder where compiled functions are kept between processes.

    functions/KEY.json   what a function's fingerprint leads to: its signature and its kernel's key
    kernels/KEY/         what `kernelwright make` wrote: kernel.cubin, launch.json, certificate.json, ...
    refused/KEY/         the page about a kernel that was refuted or undecided, and its program
    refused_parts/KEY.json  why no kernel is made of a part of a function (inside/)
    programs/KEY.json    the hash of the program's files, by their sizes and times
    making/              where all of these are written before they get their names

Nothing is ever changed in place: a file or folder is written under making/ and renamed when it is
whole, so a reader, or a process that is killed at any moment, leaves an entry or none. Two processes
that make the same thing both finish, and the first one's stays. What is read is held against its own
hash; what is damaged counts as missing, and is made again.

A cubin is code, so the folder must be the user's own and nobody else may write to it.

KERNELWRIGHT_CACHE names another folder than ~/.cache/kernelwright.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import socket
import stat
import uuid

from ..errors import MachineError

# What a launch reads; the certificate holds their hashes.
_LAUNCHED = ("kernel.cubin", "launch.json")


def digest(*parts):
    """A key: the SHA-256 of parts of JSON, hexadecimal."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _own(path):
    """Makes a folder of the user's own, or refuses one that is not."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise MachineError(f"the cache {path} belongs to user {found.st_uid}, this process to user "
                           f"{os.geteuid()}; name a folder of your own in KERNELWRIGHT_CACHE")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise MachineError(f"the cache {path} can be written by others (mode {found.st_mode & 0o777:o}), "
                           f"and code is run from it; say chmod 700 {path}")


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Cache:
    def __init__(self, root=None):
        root = root or os.environ.get("KERNELWRIGHT_CACHE") or "~/.cache/kernelwright"
        self.root = pathlib.Path(root).expanduser().absolute()
        _own(self.root)
        for name in ("functions", "kernels", "refused", "refused_parts", "programs", "making"):
            _own(self.root / name)

    # ---- records: small JSON objects with their own hash on the first line

    def read(self, kind, key):
        """The record of a key, or None where there is none or it is damaged."""
        try:
            head, text = (self.root / kind / f"{key}.json").read_text().split("\n", 1)
        except (OSError, ValueError):
            return None
        return json.loads(text) if head == hashlib.sha256(text.encode()).hexdigest() else None

    def write(self, kind, key, record):
        text = json.dumps(record, indent=1)
        staged = self.root / "making" / self._name()
        staged.write_text(hashlib.sha256(text.encode()).hexdigest() + "\n" + text)
        os.replace(staged, self.root / kind / f"{key}.json")

    def keys(self, kind, beginning):
        """Keys of records that begin so, the youngest first."""
        found = (self.root / kind).glob(f"{beginning}*.json")
        return [p.stem for p in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]

    # ---- kernels

    def kernel(self, key):
        """(folder, certificate) of a kernel that is whole, or None."""
        folder = self.root / "kernels" / key
        try:
            certificate = json.loads((folder / "certificate.json").read_text())
            hashes = certificate["files"]
            whole = all(hashes[name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
                        for name in _LAUNCHED)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (folder, certificate) if whole else None

    def add_kernel(self, key, staged):
        """Gives a whole folder under making/ its name. Returns what kernel() does."""
        folder = self.root / "kernels" / key
        if folder.exists() and self.kernel(key) is None:  # damaged: out of the way first
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder, self.root / "making" / self._name())
        try:
            os.rename(staged, folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
            shutil.rmtree(staged, ignore_errors=True)
        self._sweep()
        return self.kernel(key)

    def keep_refused(self, key, staging):
        """Keeps the folder that `kernelwright make` leaves under making/ in the place of a kernel;
        returns the path of its page, or None where there is none."""
        left = next(staging.glob("kernel.*/report.html"), None)
        if left is None:
            return None
        kept = self.root / "refused" / key
        shutil.rmtree(kept, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was first
            os.rename(left.parent, kept)
        return kept / left.name

    @contextlib.contextmanager
    def making(self):
        """A folder to make something in; it goes away unless add_kernel() took what is in it."""
        staging = self.root / "making" / self._name()
        staging.mkdir(mode=0o700)
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _name(self):
        return f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"

    def _sweep(self):
        """Removes what processes of this machine that are no more left under making/."""
        for left in (self.root / "making").iterdir():
            host, _, rest = left.name.rpartition(".")[0].rpartition(".")
            if host != socket.gethostname() or not rest.isdigit() or _alive(int(rest)):
                continue
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
