# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Collects the files of a program's image: the program, its shared libraries, CA certificates and
licences. For scanners there is a dpkg entry for each package that a file comes from. The image has
no shell, and no file that a program writes."""

import hashlib
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
USER = 65532
PROGRAMS = pathlib.Path("usr/local/bin")
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
TEXTS = {
    "etc/passwd": f"root:x:0:0::/:\nsightline:x:{USER}:{USER}::/tmp:\n",
    "etc/group": f"root:x:0:\nsightline:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
# The same directory as in distroless images: scanners read one file in it for each package.
STATUS = pathlib.Path("var/lib/dpkg/status.d")
LICENCES = pathlib.Path("usr/share/doc")


def libraries(program):
    """Returns the shared libraries of a program and the loader, or [] for a static program."""
    answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=> )?(/\S+) \(0x", answer.stdout)
    return [pathlib.Path(path) for path in found] if answer.returncode == 0 else []


def files(programs):
    """Returns {path in the image: file on this machine}."""
    found = {}
    for program in programs:
        found[PROGRAMS / program.name] = program
        for library in libraries(program):
            found[library.relative_to("/")] = library
    if CERTIFICATES.exists():
        found[CERTIFICATES.relative_to("/")] = CERTIFICATES
    return found


def package_of(file):
    """Returns the Debian package that the file comes from, or None."""
    if file == CERTIFICATES:
        return "ca-certificates"
    # Merged directories (/lib and /usr/lib) give a file two names, and dpkg knows only one.
    for name in (file, pathlib.Path("/usr") / file.relative_to("/"), file.resolve()):
        answer = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.partition(":")[0]
    return None


def make_tree(root, programs, version):
    """Writes the files below a folder and returns the packages. A library without a package is an
    error, because a scanner cannot find its vulnerabilities."""
    root.chmod(0o755)
    for made in (PROGRAMS, "etc", "tmp", STATUS, LICENCES / "sightline"):
        (root / made).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for path, text in TEXTS.items():
        (root / path).write_text(text, encoding="ascii")
    packages = {}
    for path, source in sorted(files(programs).items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / path)
        (root / path).chmod(0o755 if path.parent == PROGRAMS or ".so" in path.name else 0o644)
        if source in programs:
            strip(root / path)
            continue
        package = package_of(source)
        if package is None:
            raise SystemExit(f"{source} is of no Debian package")
        packages.setdefault(package, []).append(path)
    for package, paths in packages.items():
        tell_of_package(root, package, paths)
    tell_of_us(root, [program.name for program in programs], version)
    return sorted(packages)


def strip(program):
    """Removes debug symbols, which a release has in a separate file. Skips a file without ELF."""
    if program.read_bytes()[:4] != b"\x7fELF":
        return
    subprocess.run(["strip", "--strip-debug", program], check=True, capture_output=True)


def tell_of_package(root, package, paths):
    told = subprocess.run(["dpkg", "-s", package], capture_output=True, text=True, check=True)
    (root / STATUS / package).write_text(told.stdout, encoding="utf-8")
    note_sums(root, package, paths)
    licence = pathlib.Path("/usr/share/doc", package, "copyright")
    if licence.exists():
        target = root / LICENCES / package / "copyright"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(licence, target)
        target.chmod(0o644)


def tell_of_us(root, names, version):
    (root / STATUS / "sightline").write_text(
        f"Package: sightline\nStatus: install ok installed\nArchitecture: amd64\n"
        f"Version: {version}\nMaintainer: The Sightline Authors\n"
        "Description: routes requests to the engines that hold their blocks\n", encoding="ascii")
    note_sums(root, "sightline", [PROGRAMS / name for name in names])
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, root / LICENCES / "sightline" / name)
        (root / LICENCES / "sightline" / name).chmod(0o644)


def note_sums(root, package, paths):
    lines = [f"{hashlib.md5((root / path).read_bytes()).hexdigest()}  {path}\n"
             for path in sorted(paths)]
    (root / STATUS / f"{package}.md5sums").write_text("".join(lines), encoding="ascii")
