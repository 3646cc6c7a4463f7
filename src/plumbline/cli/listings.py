"""What is registered, in words: all of a kind a line each, or one with its options."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from plumbline.registry.catalogue import Kind, catalogue
from plumbline.registry.schema_options import options_of


def print_all(kind: Kind) -> None:
    """Print everything of a kind, a line each."""
    grid = Table.grid(padding=(0, 2))
    for listing in getattr(catalogue(), kind).values():
        grid.add_row(f"[bold]{listing.name}[/bold]", escape(listing.summary))
    Console(soft_wrap=True).print(grid)


def print_one(kind: Kind, name: str) -> None:
    """Print what one is and its options; raise PlumblineError with the nearest name if there is none."""
    listing = catalogue().find(kind, name)
    console = Console(soft_wrap=True)
    console.print(f"[bold]{name}[/bold]  {escape(listing.summary)}\n[dim]{listing.module}[/dim]")
    rows = list(options_of(listing.options))
    if not rows:
        console.print("no options")
        return
    grid = Table("option", "default", "values", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        grid.add_row(escape(row.option), escape(row.default), escape(row.values))
    console.print(grid)
