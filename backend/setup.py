"""What pyproject.toml cannot say: the wheel carries migrations, the built user interface and the OpenAPI document.

They lie in or beside this folder in a checkout, so that a wheel alone starts the whole service (`hugeplan demo`). An
editable install takes them from where they are.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

REPOSITORY = Path(__file__).resolve().parent.parent
#: Folder of the checkout, a file that a whole one has, and what makes it.
BUNDLED = {
    "migrations": (REPOSITORY / "migrations", "env.py", "build from a whole checkout"),
    "ui": (REPOSITORY / "frontend" / "dist", "index.html", "run `make frontend` first"),
}


class BuildWithBundle(build_py):
    """Copies the bundled folders into the package, in a fixed order and without caches."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name, (source, proof, remedy) in BUNDLED.items():
            if not (source / proof).is_file():
                raise SetupError(f"{source / proof} is missing, so the wheel would be incomplete: {remedy}")
            target = Path(self.build_lib) / "hugeplan" / "bundled" / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".built"))
        # setuptools takes licence files from below this folder alone.
        for file in (REPOSITORY / "LICENSE", Path(__file__).with_name("openapi.json")):
            shutil.copyfile(file, Path(self.build_lib) / "hugeplan" / "bundled" / file.name)


setup(cmdclass={"build_py": BuildWithBundle})
