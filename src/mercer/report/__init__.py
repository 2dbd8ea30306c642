"""A report: one HTML file that shows a fitted model to people who would rather look than read.

The file holds everything it needs, loads nothing, and its content security policy forbids it
to. Python gathers numbers (`content`), says them in words (`words`) and draws what does not
move (`charts`); the page's own scripts in `assets/` draw what does.
"""

from .writing import write_report

__all__ = ["write_report"]
