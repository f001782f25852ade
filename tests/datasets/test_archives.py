"""Archives are read in memory; damaged or huge ones raise an error."""

import io
import struct
import tarfile
import zipfile

import pytest

from slts.datasets import archives
from slts.errors import DataError
from tests.datasets.miniature import to_folder, to_tar, to_zip


def write(path, content):
    path.write_bytes(content)
    return path


def test_the_nearest_of_several_files_is_found(tmp_path):
    files = {"b/a/x.txt": "deep", "b/X.TXT": "near", "z/x.txt": "later", ".hidden/x.txt": "no"}
    for path in (write(tmp_path / "a.zip", to_zip(files)), to_folder(files, tmp_path / "d")):
        with archives.open_archive(path) as archive:
            assert archive.find("x.txt") == "b/X.TXT"
            assert archive.read("b/X.TXT") == b"near"
            assert archive.find("y.txt") is None


def test_members_that_would_escape_the_archive_are_passed_over(tmp_path):
    path = write(tmp_path / "a.zip", to_zip({"../../x.txt": "v"}))
    before = sorted(tmp_path.parent.iterdir())
    with archives.open_archive(path) as archive:
        assert archive.find("x.txt") is None
    assert sorted(tmp_path.parent.iterdir()) == before


def test_a_folder_is_searched_a_few_levels_deep_and_through_links(tmp_path):
    to_folder({"far/1/2/3/4/x": "", "far/1/2/y": ""}, tmp_path)
    (tmp_path / "data").mkdir()
    try:
        (tmp_path / "data" / "link").symlink_to(tmp_path / "far")
    except OSError:
        pytest.skip("this system does not let the user make links")
    with archives.open_archive(tmp_path / "data") as archive:
        assert archive.names == ["link/1/2/y"]


def test_a_folder_with_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    to_folder({f"{i}": "" for i in range(4)}, tmp_path)
    with pytest.raises(DataError, match=r"more than 3 files"), archives.open_archive(tmp_path):
        pass


@pytest.mark.parametrize("pack", [to_zip, to_tar])
def test_an_archive_that_unpacks_to_too_much_is_refused(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_BYTES", 10**6)
    bomb = write(tmp_path / "bomb", pack({"x": "0" * 600_000, "y": "0" * 600_000}))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(DataError, match=r"would unpack to 1 MiB"), archives.open_archive(bomb):
        pass


def test_a_zip_that_lies_about_its_size_is_caught(tmp_path):
    content = bytearray(to_zip({"x": "0" * 100_000}))
    start = content.rindex(b"PK\x01\x02")
    struct.pack_into("<L", content, start + 24, 100)
    path = write(tmp_path / "a.zip", bytes(content))
    with archives.open_archive(path) as archive, pytest.raises(DataError, match=r"damaged"):
        archive.read("x")


@pytest.mark.parametrize("pack", [to_zip, to_tar])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_cut_off_archives_are_refused(pack, keep, tmp_path, rng):
    text = " ".join(map(str, rng.normal(size=5000)))
    whole = pack({"x": text, "y": text})
    size = keep if isinstance(keep, int) else int(len(whole) * keep)
    path = write(tmp_path / "a", whole[:size])
    with pytest.raises(DataError, match=r"cut off|damaged"), archives.open_archive(path) as archive:
        archive.read("x")


def test_a_member_with_a_wrong_checksum_is_refused(tmp_path):
    content = bytearray(to_zip({"x": "0123456789" * 1000}))
    content[len("PK..") + 40] ^= 0xFF
    path = write(tmp_path / "a.zip", bytes(content))
    with archives.open_archive(path) as archive, pytest.raises(DataError, match=r"damaged"):
        archive.read("x")


def test_an_encrypted_member_is_refused(tmp_path):
    content = bytearray(to_zip({"x": "secret"}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + offset] |= 1
    path = write(tmp_path / "a.zip", bytes(content))
    with archives.open_archive(path) as archive, pytest.raises(DataError, match=r"encrypted"):
        archive.read("x")


def test_what_is_no_archive_is_refused(tmp_path):
    path = write(tmp_path / "a.zip", b"<html>not found</html>")
    with pytest.raises(DataError, match=r"neither a zip nor a tar"), archives.open_archive(path):
        pass


def test_links_in_tar_archives_are_left_out(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo("x.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    assert archives.read_tar(buffer.getvalue(), "here").names == []


def test_zip_folders_do_not_count_as_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.mkdir("x.txt")
    with archives.open_archive(tmp_path / "a.zip") as archive:
        assert archive.names == []
