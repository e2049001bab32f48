"""Where the files that come with specaudit lie.

A wheel carries them as `specaudit/_bundled/<kind>/`; a checkout has them as `fixtures/<kind>/` beside `pyproject.toml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from specaudit.core.errors import SpecauditError


def bundled_folder(kind: Literal["models", "prompts"]) -> Path:
    """Return the folder of bundled `kind`, from the installed package or else from the checkout.

    Raises:
        SpecauditError: neither place has the folder, that is, the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    installed = package / "_bundled" / kind
    if installed.is_dir():
        return installed
    # An installed package lies in site-packages, where a `fixtures` folder would be a stranger's.
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "fixtures" / kind).is_dir():
        return checkout / "fixtures" / kind
    raise SpecauditError(
        f"this installation of specaudit has no bundled {kind}",
        where=str(installed),
        way_out="install it again (pip install --force-reinstall specaudit)",
    )
