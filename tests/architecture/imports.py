"""Reading what a source file imports, from its syntax alone: nothing is executed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PACKAGE = "specaudit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module."""

    file: Path
    """File of the import."""

    line: int
    """Line of the import, counted from 1."""

    importer: str
    """Dotted name of the importing module."""

    module: str
    """Dotted name of the imported module, relative names resolved; for `from a import b` it is `a.b` where that is one."""

    is_loading: bool
    """Whether it runs when the importing module is imported: outside functions and `TYPE_CHECKING` blocks."""

    @property
    def importer_part(self) -> str:
        """Return the part of the package that imports."""
        return part_of(self.importer)

    def __str__(self) -> str:
        """Return `FILE:LINE: IMPORTER imports MODULE`."""
        return f"{self.file}:{self.line}: {self.importer} imports {self.module}"


def part_of(module: str) -> str:
    """Return the subpackage or file directly under the package that a module belongs to; the package itself is `""`."""
    return module.partition(".")[2].partition(".")[0]


def module_files(root: Path) -> dict[str, Path]:
    """Return every module of the package under `root`, by dotted name."""
    return {_module_name(path, root): path for path in sorted((root / PACKAGE).rglob("*.py"))}


def read_imports(root: Path) -> list[Import]:
    """Return every import in the package under `root`."""
    files = module_files(root)
    return [found for module, path in files.items() for found in imports_of(path, module, modules=files)]


def imports_of(path: Path, module: str, *, modules: Iterable[str] = ()) -> list[Import]:
    """Return the imports of one file; `modules` are the names that `from a import b` may mean as modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    known = set(modules)
    is_package = path.name == "__init__.py"
    return [
        Import(file=path, line=node.lineno, importer=module, module=name, is_loading=is_loading)
        for node, is_loading in _import_nodes(tree, is_loading=True)
        for name in _names(node, module, is_package, known)
    ]


def loading_closure(start: str, imports: Iterable[Import], modules: Iterable[str]) -> set[str]:
    """Return the modules of the package that importing `start` imports, itself and the packages around it included."""
    known = set(modules)
    targets: dict[str, set[str]] = {}
    for found in imports:
        if found.is_loading:
            targets.setdefault(found.importer, set()).add(found.module)
    reached: set[str] = set()
    todo = [start]
    while todo:
        module = todo.pop()
        if module not in known or module in reached:
            continue
        reached.add(module)
        todo += targets.get(module, set())
        parent = module.rpartition(".")[0]
        todo += [parent] if parent else []
    return reached


def _module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _import_nodes(node: ast.AST, *, is_loading: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_loading
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for statement in child.body:
                yield from _import_nodes(ast.Module([statement], []), is_loading=False)
            for statement in child.orelse:
                yield from _import_nodes(ast.Module([statement], []), is_loading=is_loading)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _import_nodes(child, is_loading=is_loading and not is_function)


def _names(node: ast.Import | ast.ImportFrom, module: str, is_package: bool, known: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        package = module.split(".") if is_package else module.split(".")[:-1]
        above = package[: len(package) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
    names = (f"{base}.{alias.name}" for alias in node.names)
    return list(dict.fromkeys(name if name in known else base for name in names))
