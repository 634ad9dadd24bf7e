"""Compile the native engine: once for each version of torch, kept in the cache folder, seen while it happens."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from filelock import FileLock

from assay._cache import cache_folder
from assay.errors import describe
from assay.pretend.errors import PretendError
from assay.progress import ProgressBar

HERE = Path(__file__).parent
SLOW = ("autocast", "operators", "alias")  # the slowest first
SOURCES = (*SLOW, "rules", "devices", "session", "cells", "collectives", "module")
FLAGS = ("-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-DTORCH_EXTENSION_NAME=_engine")
LIBRARIES = ("torch_python", "torch", "torch_cpu", "c10")


@cache
def load() -> ModuleType:
    """The engine as a module; compiled if it is not in the cache. A PretendError says why that fails."""
    import torch  # noqa: F401  (its libraries must be in the process first)

    folder = cache_folder()
    if folder is None:
        return _import(_compile_into(Path(tempfile.mkdtemp(prefix="assay-engine-"))))
    library = folder / f"engine-{_key()}.so"
    _compile_once(library)
    try:
        return _import(library)
    except ImportError:  # cut short or damaged since: it is made again
        library.unlink(missing_ok=True)
        _compile_once(library)
        return _import(library)


def _compile_once(library: Path) -> None:
    if library.exists():
        return
    with FileLock(f"{library}.lock"):  # several processes at once: one compiles, the others wait
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
                os.replace(_compile_into(Path(scratch)), library)


def compiles_first(engine: str) -> bool:
    """Whether opening a pretend device with this engine compiles the native one first."""
    return engine != "python" and not built() and not why_not()


def why_not() -> str:
    """Why the native engine is not available here, or empty."""
    from assay.pretend.torch_patches import real_devices

    if real_devices():
        return f"this build of torch has {', '.join(real_devices())} itself"
    if built() or compiler():
        return ""
    return "there is no C++ compiler (g++ or clang++, or the one named by CXX)"


def built() -> bool:
    """Whether the engine for this torch is in the cache."""
    folder = cache_folder()
    return folder is not None and (folder / f"engine-{_key()}.so").exists()


def compiler() -> str | None:
    """The C++ compiler that would be used."""
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("g++") or shutil.which("clang++")


@cache
def _key() -> str:
    """What the compiled engine depends on: torch, Python, the platform, and the sources."""
    import torch

    digest = hashlib.sha256()
    for file in sorted((*HERE.glob("*.cpp"), *HERE.glob("*.h"), Path(__file__))):
        digest.update(file.name.encode() + file.read_bytes())
    platform = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return f"torch{torch.__version__}-{platform}-{digest.hexdigest()[:16]}"


def _import(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("_engine", str(library))
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("_engine", loader, origin=str(library)))
    loader.exec_module(module)
    return module


def _compile_into(folder: Path) -> Path:
    tool = compiler()
    if tool is None:
        expected = "g++ or clang++ on the path, or CXX naming one"
        todo = "Install one (Debian: g++; macOS: xcode-select --install), or ask for engine='python', which needs none"
        raise PretendError(describe("the engine of pretend devices", "no C++ compiler", expected, todo))
    objects = [folder / f"{name}.o" for name in SOURCES]
    jobs = [
        [tool, "-c", *FLAGS, _abi(), *_includes(), str(HERE / f"{name}.cpp"), "-o", str(target)]
        for name, target in zip(SOURCES, objects, strict=True)
    ]
    what = f"assay: compiling the engine of pretend devices for torch {version('torch')} (once, about a minute)"
    print(what, file=sys.stderr, flush=True)
    with ProgressBar("compiling", len(jobs)) as bar, ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for done in as_completed([pool.submit(_run, job) for job in jobs]):
            done.result()
            bar.update(advance=1)
    library = folder / "_engine.so"
    _run([tool, "-shared", *map(str, objects), "-o", str(library), *_links()])
    return library


def _abi() -> str:
    """The form of the standard library's strings that torch was built with."""
    import torch

    return f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"


def _includes() -> list[str]:
    from torch.utils.cpp_extension import include_paths

    return [f"-I{path}" for path in (*include_paths(), sysconfig.get_paths()["include"])]


def _links() -> list[str]:
    from torch.utils.cpp_extension import library_paths

    places = [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    loose = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    return [*places, *(f"-l{name}" for name in LIBRARIES), *loose]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-15:])
        todo = "Report it with the text above, or ask for engine='python', which compiles nothing"
        got = f"this from {command[0]}:\n{last}"
        raise PretendError(describe("the engine of pretend devices", got, "to compile", todo))
