"""Bytes to disk so that a crash loses nothing: locks, atomic replacement, appends. Every effect passes `seam.step` first."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_tools import seam
from memory_tools.errors import Busy, Forbidden, InvalidInput, MemoryToolsError, NotFound

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_WINDOWS = sys.platform == "win32"
if sys.platform != "win32":
    import fcntl
_TAIL = 4096


def refused(e: OSError, target: Path) -> MemoryToolsError:
    """The error of this package that tells the true cause of an OSError."""
    what = f"{target}: {e.strerror or e}"
    if e.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Forbidden(what, "check the permissions of the file and its folder")
    if e.errno == errno.ELOOP:
        return Forbidden(f"{target}: is a symbolic link", "name the file it leads to")
    if e.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(what)
    if e.errno in (errno.ENAMETOOLONG, errno.EISDIR, errno.EINVAL):
        return InvalidInput(what)
    if e.errno in (errno.ENOSPC, errno.EDQUOT):
        return Busy(what, "free some space and try again")
    return Busy(what, "try again")


@contextmanager
def lock(target: Path, timeout_s: float = 10.0) -> Iterator[None]:
    """Exclusive between processes and threads, by `.<name>.lock` beside `target`. Not re-entrant. Busy when held for `timeout_s`."""
    make_folder(target.parent)
    path = target.parent / f".{target.name}.lock"
    try:
        seam.step("open", str(path))
        release = _portable_lock(path, timeout_s) if _WINDOWS else _flock(path, time.monotonic() + timeout_s)
    except TimeoutError as e:
        raise Busy(f"{target}: in use by another process for more than {timeout_s:g} s", "try again") from e
    except OSError as e:
        raise refused(e, target) from e
    try:
        yield
    finally:
        release()


def _flock(path: Path, deadline: float) -> Callable[[], None]:
    """filelock's own way on POSIX, without its import, which costs a third of what numpy's does."""
    pause = 0.001
    while True:
        fd = _open_lock(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed the file: then others lock another one of the same name.
            if os.path.samestat(os.fstat(fd), path.stat()):
                return lambda: _unlock(fd)
        except BlockingIOError as e:
            if time.monotonic() >= deadline:
                os.close(fd)
                raise TimeoutError from e
        except FileNotFoundError:
            pass  # removed: the next round makes it again
        except OSError as e:
            os.close(fd)
            if e.errno in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):  # a network share without locks
                return _portable_lock(path, max(0.0, deadline - time.monotonic()))
            raise
        os.close(fd)
        time.sleep(pause)
        pause = min(0.05, pause * 2)


def _unlock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would leave it to a forked child that has the descriptor too
    finally:
        os.close(fd)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW | _CLOEXEC, 0o666)
    except PermissionError:
        if not path.exists():
            raise
        return os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC)  # another user's lock file can be locked, not written


def _portable_lock(path: Path, timeout_s: float) -> Callable[[], None]:
    from filelock import FileLock, Timeout

    guard = FileLock(str(path), timeout=timeout_s)
    try:
        guard.acquire()
    except Timeout as e:
        raise TimeoutError from e
    return guard.release


def replace(target: Path, content: bytes) -> None:
    """The whole file becomes `content`, or stays as it was: a temporary file in the same folder, fsync, rename. The mode is kept."""
    make_folder(target.parent)
    temporary = target.parent / f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        before = _regular(target)
        seam.step("open", str(temporary))
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY | _CLOEXEC, 0o666)
        try:
            try:
                _write(fd, content, temporary)
                if before is not None and not _WINDOWS:
                    os.fchmod(fd, stat.S_IMODE(before.st_mode))
                    with suppress(OSError):  # only root may give a file away
                        os.fchown(fd, before.st_uid, before.st_gid)
                _fsync(fd, temporary)
            finally:
                os.close(fd)
            _rename(temporary, target, content)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(target.parent)
    except OSError as e:
        raise refused(e, target) from e


def append(target: Path, content: bytes, timeout_s: float = 10.0) -> None:
    """`content` behind the file's end, all of it or nothing, under the file's lock."""
    with lock(target, timeout_s):
        append_unlocked(target, content)


def append_unlocked(target: Path, content: bytes) -> None:
    """As `append`, for a caller that holds the lock. A last line without its break, left by a crash or an editor, is ended first."""
    make_folder(target.parent)
    try:
        created = _regular(target) is None
        seam.step("open", str(target))
        fd = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | _NOFOLLOW | _BINARY | _CLOEXEC, 0o666)
        try:
            size = os.fstat(fd).st_size
            os.lseek(fd, max(0, size - _TAIL), os.SEEK_SET)
            tail = os.read(fd, _TAIL)
            if tail and not tail.endswith((b"\n", b"\r")):
                content = (b"\r\n" if b"\r\n" in tail else b"\n") + content
            try:
                _write(fd, content, target)
                _fsync(fd, target)
            except OSError:
                # Half an entry is worse than none: the caller is told that nothing was stored.
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if created:
            sync_folder(target.parent)
    except OSError as e:
        raise refused(e, target) from e


def remove(target: Path) -> None:
    """The file is gone afterwards; it may have been gone before."""
    try:
        seam.step("unlink", str(target))
        target.unlink()
        sync_folder(target.parent)
    except FileNotFoundError:
        return
    except OSError as e:
        raise refused(e, target) from e


def make_folder(folder: Path) -> None:
    """The folder and its parents exist afterwards."""
    if folder.is_dir():
        return
    try:
        seam.step("mkdir", str(folder))
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as e:
        raise InvalidInput(f"{folder}: is a file where a folder is needed") from e
    except OSError as e:
        raise refused(e, folder) from e


def sync_folder(folder: Path) -> None:
    """The folder's entries reach the disk, where the system can do that for folders."""
    if _WINDOWS:
        return
    seam.step("fsync", str(folder))
    fd = os.open(folder, os.O_RDONLY | _CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as e:
        # Network and FUSE file systems refuse it for folders; the rename itself has happened.
        if e.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS):
            raise
    finally:
        os.close(fd)


def _regular(target: Path) -> os.stat_result | None:
    """The target's state, None where it does not exist. A link is refused: replacing it would leave the file it leads to behind."""
    try:
        state = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(state.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    return state


def _write(fd: int, content: bytes, target: Path) -> None:
    seam.step("write", str(target))
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _fsync(fd: int, target: Path) -> None:
    seam.step("fsync", str(target))
    os.fsync(fd)


def _rename(temporary: Path, target: Path, content: bytes) -> None:
    for attempt in range(10):
        try:
            seam.step("replace", str(target))
            temporary.replace(target)
            return
        except PermissionError:
            # Windows: a reader or a virus scanner holds the target for a moment.
            if not _WINDOWS or attempt == 9:
                raise
            time.sleep(0.05 * (attempt + 1))
        except OSError as e:
            # A single file mounted into a container cannot be replaced by name. It is written in place; until that is on
            # the disk, the temporary file holds the whole content.
            if e.errno not in (errno.EXDEV, errno.EBUSY):
                raise
            _overwrite(target, content)
            temporary.unlink()
            return


def _overwrite(target: Path, content: bytes) -> None:
    seam.step("open", str(target))
    fd = os.open(target, os.O_WRONLY | _NOFOLLOW | _BINARY | _CLOEXEC)
    try:
        _write(fd, content, target)
        os.ftruncate(fd, len(content))
        _fsync(fd, target)
    finally:
        os.close(fd)
