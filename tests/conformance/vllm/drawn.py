# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Draws images in the formats that clients send. A seed always gives the same, distinct image."""

import io

from PIL import Image, ImageDraw

EXIF_ORIENTATION = 0x0112


def _canvas(width, height, seed):
    picture = Image.new("RGB", (width, height), (seed * 53 % 256, seed * 101 % 256, 90))
    draw = ImageDraw.Draw(picture)
    for i in range(1, 9):
        box = (0, 0, width * i // 9, height * (9 - i) // 9)
        draw.rectangle(box, outline=(i * 28, seed * 29 % 256, 255 - i * 20), width=3)
    draw.text((3, 3), str(seed), fill=(255, 255, 255))
    return picture


def _encoded(picture, kind, **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def png(width, height, seed, mode="RGB"):
    return _encoded(_canvas(width, height, seed).convert(mode), "PNG")


def jpeg(width, height, seed, orientation=None):
    options = {}
    if orientation is not None:
        exif = Image.Exif()
        exif[EXIF_ORIENTATION] = orientation
        options["exif"] = exif
    return _encoded(_canvas(width, height, seed), "JPEG", quality=85, **options)


def webp(width, height, seed, lossless=False):
    return _encoded(_canvas(width, height, seed), "WEBP", lossless=lossless)


def gif(width, height, seed):
    return _encoded(_canvas(width, height, seed).convert("P"), "GIF")
