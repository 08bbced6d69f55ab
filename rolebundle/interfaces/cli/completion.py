"""`rolebundle completion`: the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    It completes commands, options, roles, and paths of documents. Load it when your shell starts:

    \b
    rolebundle completion bash > ~/.local/share/bash-completion/completions/rolebundle
    rolebundle completion zsh > ~/.zfunc/_rolebundle    (a folder of $fpath, before compinit)
    rolebundle completion fish > ~/.config/fish/completions/rolebundle.fish
    """
    from click.shell_completion import get_completion_class

    program = context.find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    name = str(program.info_name)
    made = complete(program.command, {}, name, f"_{name.upper()}_COMPLETE")
    # Not `source()`, which starts a bash to ask for its version.
    click.echo(made.source_template % made.source_vars())
