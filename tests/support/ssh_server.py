"""An ssh server of this machine's own program, for one account, on a free port of loopback."""

import atexit
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

_SSHD_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/account.pub
StrictModes no
UsePAM no
PasswordAuthentication yes
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
# Bash then takes itself for a nested shell and does not read the account's .bashrc.
SetEnv SHLVL=2
"""
_CLIENT_CONFIG = """\
Host *
  IdentityFile {folder}/account
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  ControlPath {folder}/control
"""


class SshServer(NamedTuple):
    """``ssh``: a program that knows the server and has a key; ``address``: user, host and port."""

    ssh: str
    address: str


@cache
def shared_ssh_server() -> SshServer:
    """One server for all tests of this process, with a connection that all commands use."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(TemporaryDirectory())
    server = stack.enter_context(ssh_server(Path(folder)))
    host, _, port = server.address.rpartition(":")
    master = [server.ssh, "-N", "-o", "ControlMaster=yes", "-p", port, host]
    connection = stack.enter_context(subprocess.Popen(master, stderr=subprocess.DEVNULL))
    stack.callback(connection.terminate)
    return server


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """A server that runs commands as the account of the tests. Skips if it cannot be started."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if not sshd or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("openssh-server and openssh-client are not installed")
    if os.geteuid() == 0:
        # The system's service creates it when it starts.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "account"):
        make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(make_key, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host_key = (folder / "host.pub").read_text().strip()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (folder / "sshd_config").write_text(_SSHD_CONFIG.format(port=port, folder=folder))
    (folder / "ssh_config").write_text(_CLIENT_CONFIG.format(folder=folder))
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec ssh -F {folder}/ssh_config "$@"\n')
    program.chmod(0o700)
    command = [sshd, "-D", "-e", "-f", folder / "sshd_config"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        output = ""
        try:
            for line in server.stderr:
                output += line
                if "Server listening on" in line:
                    break
            else:
                pytest.skip(f"sshd does not start: {output.strip()}")
            yield SshServer(str(program), f"{getpass.getuser()}@127.0.0.1:{port}")
        finally:
            server.terminate()
