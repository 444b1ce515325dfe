# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Writes a container image as the tar of an OCI layout, without a daemon or a registry. The same
files give the same bytes."""

import gzip
import hashlib
import io
import json
import tarfile

from product_files import PROGRAMS, USER

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
PACKED = f"{LAYER}+gzip"


def of_directory(archive, directory, annotations, run=None, is_packed=False, labels=None):
    """Writes an image with the files of the directory. Root owns all of them, and they have no
    times. `run` has further settings, for example User and Entrypoint. `annotations` go into the
    index, where loaders look for a name. Returns the digest of the manifest."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(directory, arcname=".", filter=_of_root)
    content = layer.getvalue()
    packed = gzip.compress(content, 9, mtime=0) if is_packed else content
    blobs = {}

    def blob(data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    below = blob(packed, PACKED if is_packed else LAYER)
    config = blob(_json({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]} | (run or {})
        | ({"Labels": labels} if labels else {}),
        "rootfs": {"type": "layers",
                   "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]}}), CONFIG)
    manifest = blob(_json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config,
                           "layers": [below]}), MANIFEST)
    digest = manifest["digest"]
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(tar, "index.json", _json({
            "schemaVersion": 2, "mediaType": INDEX,
            "manifests": [manifest | {"annotations": annotations}]}))
        # Some readers need an entry for each folder before the entries of its files.
        for folder in ("blobs", "blobs/sha256"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, data in sorted(blobs.items()):
            _add(tar, f"blobs/sha256/{name}", data)
    return digest


def of_product(archive, directory, name, tag):
    """Writes an image of the product from the files that product_files.make_tree() has made."""
    run = {"User": f"{USER}:{USER}", "Entrypoint": [f"/{PROGRAMS}/{name}"], "WorkingDir": "/"}
    labels = {"org.opencontainers.image.title": name, "org.opencontainers.image.version": tag,
              "org.opencontainers.image.licenses": "Apache-2.0"}
    names = {"io.containerd.image.name": f"{name}:{tag}", "org.opencontainers.image.ref.name": tag}
    return of_directory(archive, directory, names, run, is_packed=True, labels=labels)


def _json(value):
    return json.dumps(value, sort_keys=True).encode()


def _add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def _of_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    return entry
