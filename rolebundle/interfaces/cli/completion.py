"""`rolebundle completion`: the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")

CORRECTIONS = {
    # Of --role=sec bash makes three words, and click would see no option.
    "bash": [
        (
            'response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD',
            'local words=("${COMP_WORDS[@]}") cword=$COMP_CWORD\n'
            '    [[ ${words[cword-1]} == "=" ]] && unset "words[cword-1]" && ((cword--))\n'
            '    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$cword',
        )
    ],
    # zsh would put the value in the place of all of --role=sec.
    "zsh": [
        (
            "compadd -U ",
            """[[ ${words[CURRENT]} == -*=* ]] && compset -P '*='
        compadd -U -i "$IPREFIX" """,
        )
    ],
    # fish would cut names and descriptions at their first comma, and not complete --role=sec.
    "fish": [
        ('string split ","', 'string split --max 1 ","'),
        (
            "echo $metadata[2]",
            "set -l option (string match --regex -- '^-[^=]*=' (commandline -t));\n"
            '            echo "$option$metadata[2]"',
        ),
    ],
}
"""Shell → replacements in the script that click makes. Another version of click may lack some."""


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
    completer = complete(program.command, {}, name, f"_{name.upper()}_COMPLETE")
    # Not `source()`, which starts a bash to ask for its version.
    script = completer.source_template % completer.source_vars()
    for original, corrected in CORRECTIONS[shell]:
        script = script.replace(original, corrected)
    click.echo(script)
