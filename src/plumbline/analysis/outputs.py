"""The registries of figures and tables, and what each is made from."""

from plumbline.registry import Registry

figures = Registry("figure", "plumbline.analysis.figures")
tables = Registry("table", "plumbline.analysis.tables")
