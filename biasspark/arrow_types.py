"""The types by which Spark reads Arrow types from Parquet. No Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""The types for unsigned integers."""

_TYPES = {
    **UNSIGNED,
    pa.null(): pa.int32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    # Older versions of pyarrow lack views.
    **({pa.string_view(): pa.string(), pa.binary_view(): pa.binary()} if hasattr(pa, "string_view") else {}),
}
_MAX_DIGITS = 38
"""The digits of Spark's widest decimal."""


def simple_type(kind: pa.DataType) -> pa.DataType:
    """Return the type for one without inner types; times are left to the caller."""
    if pa.types.is_decimal(kind) and kind.precision <= _MAX_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    return _TYPES.get(kind, kind)


def replace_types(
    kind: pa.DataType, simple: Callable[[pa.DataType], pa.DataType], *, keeps_dictionaries: bool = False
) -> pa.DataType:
    """Return a type with the `simple` types in it replaced.

    Extension types become their storage, lists of any kind lists, and dictionaries their values, unless they are kept.
    """

    def inner(of: pa.DataType) -> pa.DataType:
        return replace_types(of, simple, keeps_dictionaries=keeps_dictionaries)

    if isinstance(kind, pa.BaseExtensionType):
        return inner(kind.storage_type)
    if pa.types.is_dictionary(kind):
        values = replace_types(kind.value_type, simple)
        return pa.dictionary(kind.index_type, values) if keeps_dictionaries else values
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, inner(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_type), inner(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_type))
    return kind if pa.types.is_nested(kind) else simple(kind)
