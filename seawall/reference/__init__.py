"""Pages of docs/ that are made from the code.

    commands   docs/COMMANDS.md   python -m seawall.reference.commands > docs/COMMANDS.md
    settings   docs/SETTINGS.md   python -m seawall.reference.settings > docs/SETTINGS.md

Events, metrics and rules have theirs beside what they are made from.
"""
