"""What a file system may leave of a log of operations after a power loss.

The model is stricter than usual file systems:

- What was written before the last sync of a file is there.
- Of later writes, each sector (512 or 4096 bytes) is there as it was after any of them, and so is
  the size of the file. So writes are lost, torn and stored out of order. A sector that was never
  written is zero, or random if the file has grown. A file is cut as a whole: cutting it is a change
  of its size.
- Names of files are there as they were at the last sync of the folder. Later changes are there up
  to any of them, or each by chance. The sync of a file does not make its name durable.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from support.faulty_file_system import TEMPORARY, Disk, Operation

Files = dict[str, bytes]
_NAMING = ("create", "delete", "link", "rename")
_PRIMITIVE = ("write", "truncate")


def intact_state(disk: Disk, until: int) -> Files:
    """The files after so many operations, as a process sees them."""
    return _state(disk, until, None)


def crash_state(disk: Disk, until: int, chance: Random) -> Files:
    """Files that a power loss after so many operations may leave."""
    return _state(disk, until, chance)


def write_files(files: Files, folder: Path) -> None:
    """Write such files into an empty folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _state(disk: Disk, until: int, chance: Random | None) -> Files:
    durable: dict[int, bytes] = {}
    pending: dict[int, list[Operation]] = {}
    names: dict[str, int] = {}
    renamed: list[Operation] = []
    for inode, (name, content) in enumerate(disk.base.items(), start=1):
        durable[inode], names[name] = content, inode
    for operation in disk.log[:until]:
        if operation.file == TEMPORARY:
            continue
        if operation.kind in _PRIMITIVE:
            pending.setdefault(operation.inode, []).append(operation)
        elif operation.kind == "sync":
            inode = operation.inode
            durable[inode] = _all_of(durable.get(inode, b""), pending.pop(inode, []))
        elif operation.kind in _NAMING:
            renamed.append(operation)
        elif operation.kind == "sync_folder":
            _rename(names, renamed)
            renamed = []
    if chance is None:
        _rename(names, renamed)
        files = {
            inode: _all_of(durable.get(inode, b""), operations)
            for inode, operations in pending.items()
        }
    else:
        _rename(names, _part_of(renamed, chance))
        # One kind of loss for all files of a state: nothing, all, or some of it.
        kind = chance.choice(("none", "all", "some", "some", "some", "some"))
        sector = chance.choice((512, 4096))
        files = {}
        for inode, operations in pending.items():
            before = durable.get(inode, b"")
            if kind == "none":
                files[inode] = before
            elif kind == "all":
                files[inode] = _all_of(before, operations)
            else:
                files[inode] = _some_of(before, operations, sector, chance)
    contents = durable | files
    return {name: contents.get(inode, b"") for name, inode in names.items()}


def _all_of(content: bytes, operations: Sequence[Operation]) -> bytes:
    if not operations:
        return content
    result = bytearray(content)
    for operation in operations:
        if operation.kind == "truncate":
            del result[operation.offset :]
            continue
        if len(result) < operation.offset:
            result.extend(bytes(operation.offset - len(result)))
        result[operation.offset : operation.offset + len(operation.data)] = operation.data
    return bytes(result)


def _some_of(content: bytes, operations: Sequence[Operation], sector: int, chance: Random) -> bytes:
    """Each sector as it was after a random one of the operations, and a size likewise."""
    sizes = [len(content)]
    for operation in operations:
        end = operation.offset + len(operation.data)
        sizes.append(end if operation.kind == "truncate" else max(sizes[-1], end))
    resized = _stored(len(operations), chance)
    size = sizes[resized]
    grown = max(0, size - len(content))
    filling = chance.randbytes(grown) if chance.random() < 0.2 else bytes(grown)
    result = bytearray(content[:size] + filling)
    stored: dict[int, int] = {}
    for number, operation in enumerate(operations, start=1):
        start = operation.offset
        if operation.kind == "truncate":
            if number <= resized:
                result[start:] = bytes(len(result[start:]))
            continue
        end = min(start + len(operation.data), size)
        while start < end:
            place = start // sector
            next_start = min((place + 1) * sector, end)
            if place not in stored:
                stored[place] = _stored(len(operations), chance)
            if stored[place] >= number:
                first = start - operation.offset
                result[start:next_start] = operation.data[first : first + next_start - start]
            start = next_start
    return bytes(result)


def _stored(operations: int, chance: Random) -> int:
    """How many of the operations reached the disk: often all, often none."""
    kind = chance.random()
    return operations if kind < 0.4 else 0 if kind < 0.6 else chance.randint(0, operations)


def _part_of(operations: list[Operation], chance: Random) -> list[Operation]:
    if chance.random() < 0.75:
        return operations[: chance.randint(0, len(operations))]
    return [operation for operation in operations if chance.random() < 0.5]


def _rename(names: dict[str, int], operations: Sequence[Operation]) -> None:
    for operation in operations:
        if operation.kind == "create":
            names[operation.file] = operation.inode
        elif operation.kind == "delete":
            names.pop(operation.file, None)
        elif operation.file in names:  # It is missing if its creation was lost.
            inode = names[operation.file]
            if operation.kind == "rename":
                del names[operation.file]
            names[operation.to] = inode
