# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What an image of a program holds: the program, the shared libraries that it is linked to,
certificates of authorities, licences, and for scanners an entry of dpkg's for every package that
something comes from. No shell, nothing that is written to."""

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
# As in distroless images: scanners read one file of it for each package.
STATUS = pathlib.Path("var/lib/dpkg/status.d")
LICENCES = pathlib.Path("usr/share/doc")


def libraries(program):
    """Those that the loader takes, and the loader; none for a static program."""
    answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=> )?(/\S+) \(0x", answer.stdout)
    return [pathlib.Path(path) for path in found] if answer.returncode == 0 else []


def files(programs):
    """{path in the image: file here}"""
    found = {}
    for program in programs:
        found[PROGRAMS / program.name] = program
        for library in libraries(program):
            found[library.relative_to("/")] = library
    if CERTIFICATES.exists():
        found[CERTIFICATES.relative_to("/")] = CERTIFICATES
    return found


def package_of(file):
    """The Debian package that the file comes from; None without one."""
    if file == CERTIFICATES:
        return "ca-certificates"
    # dpkg knows a file by the one or the other of the two names that merged directories give it.
    for name in (file, pathlib.Path("/usr") / file.relative_to("/"), file.resolve()):
        answer = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.partition(":")[0]
    return None


def make_tree(root, programs, version):
    """Writes it below a folder; returns the packages. Of a library that no package has an error:
    nobody could look its flaws up."""
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
    """Symbols are released apart. What is no program of the loader's has none."""
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
