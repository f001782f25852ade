"""Optional dependencies: errors name the extra, and only that of the missing package."""

import sys

import pytest

from slts.extras import LazyModule, import_extra


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (lambda: import_extra("pyarrow", "io"), lambda: LazyModule("pyarrow", "io").table):
        with pytest.raises(ImportError, match=r'pyarrow is required .*pip install "slts\[io\]"'):
            call()


def test_a_broken_module_is_not_reported_as_a_missing_extra(monkeypatch, tmp_path):
    (tmp_path / "slts_broken_module.py").write_text("import slts_no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="slts_no_such_dependency"):
        import_extra("slts_broken_module", "io")
