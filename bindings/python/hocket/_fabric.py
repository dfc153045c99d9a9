# SPDX-License-Identifier: Apache-2.0
"""Fabrics: models of machines and the links between them."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Tuple, Union

from . import _c
from ._errors import check
from ._plan import printed


class Constant(NamedTuple):
    """A number of a fabric, with where it comes from."""
    name: str
    value: float
    unit: str
    source: str


class Constants(Mapping[str, float]):
    """The constants of a fabric: fabric.constants["nic.bw"]."""

    def __init__(self, rows: List[Constant]) -> None:
        self.rows = rows
        self._values = {row.name: row.value for row in rows}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "\n".join(f"{row.name} = {row.value:g} {row.unit}  ({row.source})"
                         for row in self.rows)


class Fabric:
    """A model of machines, for predictions. hocket.fabric() makes them."""

    def __init__(self, handle: int, again: Callable[[], int]) -> None:
        self._handle = handle
        self._again = again            # makes another one
        self._changes: Tuple[str, ...] = ()
        info = _c.FabricInfo()
        _c.lib.hk_fabric_describe(handle, byref(info))
        self.name: str = _c.text(info.name)
        self.about: str = _c.text(info.about)
        self.ranks: int = info.ranks
        self.nodes: int = info.nodes
        self.node_ranks: int = info.node_ranks
        self.links: int = info.links

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle and _c is not None:
            _c.lib.hk_fabric_free(handle)

    def __repr__(self) -> str:
        return f"<hocket.Fabric {self.name}: {self.ranks} ranks on {self.nodes} nodes>"

    def __str__(self) -> str:
        return printed(_c.lib.hk_fabric_print, self._handle)

    @property
    def constants(self) -> Constants:
        """Its constants, with units and sources."""
        rows: List[Constant] = []
        raw = _c.FabricConstant()
        while _c.lib.hk_fabric_constant(self._handle, len(rows), byref(raw)):
            rows.append(Constant(_c.text(raw.name), raw.value, _c.text(raw.unit),
                                 _c.text(raw.source)))
        return Constants(rows)

    def change(self, *changes: str) -> "Fabric":
        """A fabric like this with constants changed: fabric.change("nic.bw=2x")."""
        made = Fabric(self._again(), self._again)
        made._changes = self._changes + changes
        for change in made._changes:
            why = _c.Why()
            check(_c.lib.hk_fabric_change(made._handle, _c.encode(change, "change"),
                                          byref(why)), why)
        return made

    def yaml(self) -> str:
        """The fabric as a file that hocket.fabric() reads."""
        return printed(_c.lib.hk_fabric_print_file, self._handle)


def parse(text: Union[str, bytes], name: str = "text") -> Fabric:
    """A fabric from the text of a file, hocket-fabric(5)."""
    data = text.encode() if isinstance(text, str) else bytes(text)

    def make() -> int:
        why, made = _c.Why(), c_void_p()
        check(_c.lib.hk_fabric_parse(data, len(data), _c.encode(name, "name"), None, byref(why),
                                     byref(made)), why)
        return made.value  # type: ignore[return-value]

    return Fabric(make(), make)


def fabric(spec: Any) -> Fabric:
    """A fabric by name ("dgx-h100:16", "torus:8x8x8", "here") or from a file."""
    if isinstance(spec, Fabric):
        return spec
    text = _c.encode(spec, "fabric")

    def make() -> int:
        why, made = _c.Why(), c_void_p()
        check(_c.lib.hk_fabric_create(text, None, byref(why), byref(made)), why)
        return made.value  # type: ignore[return-value]

    return Fabric(make(), make)


class FabricName(NamedTuple):
    """A name that hocket.fabric() knows."""
    name: str
    scale: str
    options: str
    about: str


def fabrics() -> List[FabricName]:
    """The names that hocket.fabric() knows."""
    found: List[FabricName] = []
    raw = _c.FabricName()
    while _c.lib.hk_fabric_name_get(len(found), byref(raw)):
        found.append(FabricName(*[_c.text(getattr(raw, name)) for name in FabricName._fields]))
    return found
