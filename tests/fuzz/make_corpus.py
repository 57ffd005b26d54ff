#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py MAKECERTIFICATES [FOLDER]: writes the inputs of tests/fuzz/corpus that are laid out
by protocol/wire.md and the fuzzers' first comments: valid ones, and nearly valid ones."""
import os
import struct
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(name, entry, data):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, entry), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def stream(data=b"", bulk=0, content=None):
    return struct.pack("<II", len(data), bulk) + data + (bytes(bulk) if content is None else content)


def make_rdma():
    BYTES, OFFER, ROOM = 1, 3, 4

    def some(data, credits=1):
        return bytes([2, len(data), credits]) + data

    def many(data, credits=1):
        assert len(data) % 32 == 0
        return bytes([1, len(data) // 32, credits]) + data

    def place(kind, address, key, size):
        return bytes([kind, 0]) + struct.pack("<QII", address, key, size)

    taken, filled, credit, end = b"\x0e\0", b"\x06\0", b"\x07\0", bytes([5 | 7 << 3, 0, 0])
    server, client = 1, 0
    for who, name in ((server, "server"), (client, "client")):
        put("rdma", name + "_messages", bytes([who, 0]) + some(stream(b"hello")) + some(stream(b"", 8)) + end)
        put("rdma", name + "_in_halves", bytes([who, 4]) + some(stream(b"hello", 100)[:7]) + some(stream(b"hello", 100)[7:]) + end)
        put("rdma", name + "_sends", bytes([who | 2 | 1 << 2, 8]) + some(stream(b"x")) * 6 + end)
        put("rdma", name + "_over_credit", bytes([who, 0]) + many(stream(bytes(6000), 0)[:992]) * 40)
        put("rdma", name + "_large", bytes([who, 0]) + many((stream(bytes(2000)) + stream(bytes(2000)))[:4000]) + end)
        put("rdma", name + "_fails", bytes([who, 24]) + some(stream(b"x")) + b"\xff\x04")
        put("rdma", name + "_wrong_header", bytes([who, 0]) + b"\0\1" + bytes([BYTES, 0, 0, 0, 99, 0, 0, 0]) + bytes(25))
        put("rdma", name + "_early_answer", bytes([who, 0]) + taken + filled)
    head = struct.pack("<II", 0, 100000)
    put("rdma", "server_bulk", bytes([1, 0]) + some(head) + place(OFFER, 4096, 7, 65536) + place(OFFER, 99, 8, 34464) + some(stream(b"x")) + end)
    put("rdma", "server_bulk_kept", bytes([1, 2]) + some(head) + place(OFFER, 4096, 7, 1 << 20) + some(stream(b"x")) + end)
    put("rdma", "server_bulk_nowhere", bytes([1, 1]) + some(head) + place(OFFER, 4096, 7, 100000) + end)
    put("rdma", "server_room", bytes([1 | 2 | 7 << 2, 0]) + place(ROOM, 1 << 40, 3, 40000) + some(stream(b"x")) + place(ROOM, 0, 0, 300000) + end)
    put("rdma", "server_room_of_no_size", bytes([1, 0]) + place(ROOM, 1, 1, 0))
    put("rdma", "server_offers", bytes([1, 0]) + place(OFFER, 1, 1, 1) * 5)
    put("rdma", "client_bulk", bytes([0, 0]) + some(head) + filled + some(stream(b"x")) + end)
    put("rdma", "client_bulk_kept", bytes([0, 2]) + some(struct.pack("<II", 0, 1 << 20)) + filled * 4 + end)
    put("rdma", "client_sends_bulk", bytes([0 | 2 | 6 << 2, 0]) + credit * 2 + taken * 2 + some(stream(b"x")) + taken * 3 + some(stream(b"y")) + end)
    put("rdma", "client_offered", bytes([0, 0]) + place(OFFER, 1, 1, 100))


def make_tls_bulk():
    def record(kind, data):
        return bytes([kind]) + struct.pack("<H", len(data)) + data

    data, full, raw, damaged, padded = 7, 6, 3, 4, 5
    update = bytes([24, 0, 0, 1, 1])
    for suite in range(3):
        for server in (0, 0x80):
            head = bytes([suite | server, 0])
            name = f"{'server' if server else 'client'}_{suite}"
            put("tls_bulk", name, head + record(data, stream(b"hello", 5)) + record(0, b"\1\0"))
            put("tls_bulk", name + "_bulk", head + record(data, stream(b"", 40 << 14, b"")) + record(full, b"\x28") + record(data, stream(b"x")) + record(0, b"\1\0"))
            put("tls_bulk", name + "_keys", head + record(data, stream(b"", 20 << 14, b"")) + record(full, b"\x05") + record(1, update) + record(full, b"\x0f") + record(0, b"\1\0"))
    head = bytes([0x80, 0])
    put("tls_bulk", "damaged", head + record(data, stream(b"", 20 << 14, b"")) + record(full, b"\x10") + record(damaged, b"\7" * 16384))
    put("tls_bulk", "short_record", head + record(data, stream(b"", 20 << 14, b"")) + record(full, b"\x06") + record(data, bytes(100)) + record(full, b"\x10"))
    put("tls_bulk", "padded", head + record(padded, stream(b"hello") + b"\x17\0\0\0") + record(padded, b"\0" * 16384))
    put("tls_bulk", "alert_in_bulk", head + record(data, stream(b"", 20 << 14, b"")) + record(full, b"\x08") + record(0, b"\2\x28"))
    put("tls_bulk", "raw", head + record(raw, b"\x17\3\3\0\x13" + bytes(19)))
    put("tls_bulk", "cut", head + record(data, stream(b"hello")) + record(raw, b"\x17\3\3\x40\x11" + bytes(90)))
    put("tls_bulk", "nowhere", bytes([0x80, 5]) + record(data, stream(b"", 40 << 14, b"")) + record(full, b"\x28"))


def make_shm():
    def put_in(data):
        return struct.pack("<BB", 0, len(data)) + bytes(3) + data

    def word(which, value):
        return struct.pack("<BBI", 2, which, value)

    receive, send, watch, wake = b"\6", b"\4\x40\0", b"\5", b"\3"
    whole = put_in(stream(b"hello, 16 bytes.", 3, b"bul"))
    put("shm", "whole", whole + receive + whole + whole + receive + receive)
    put("shm", "cut", whole + receive + put_in(stream(b"hello")[:9]) + receive)
    put("shm", "woken", watch + whole + wake + receive + watch + wake + receive + send)
    put("shm", "tail_too_far", word(0, 0x80001) + receive)
    put("shm", "tail_back", whole + receive + word(0, 1) + receive)
    put("shm", "zeros_for_ever", word(0, 0x80000) + receive * 20)
    put("shm", "head_too_far", send + word(8 + 3, 0x1000) + send)
    put("shm", "over", whole + word(1, 1) + receive + receive)
    put("shm", "unread", word(8 + 4, 1) + send)
    put("shm", "behind_the_tail", b"\1\x08\0\0\0" + b"\4\0\0\0\0\0\0\0" + word(0, 12) + receive)


def make_url():
    for number, text in enumerate((
            "host", "tcp://host:4833/0", "tls://[::1]:1/1023", "unix:///run/gpupool/gpupool.sock", "loop:name", "rdma://10.0.0.1",
            "rdma+tcp://host:1", "a,b:2,tcp://c/3", "http://host", "tcp://", "host:99999", "[::1", "unix://relative", "::1", "a,,b",
            "host/1024", "host:", "x" * 300, "tls://host/", "*:0", "fe80::1%eth0", "[fe80::1%eth0]:5")):
        put("url", f"url{number:02}", text)


def make_array():
    def shape(width, height, depth, form, channels, flags=0, levels=0, box=(0, 0, 0, 4, 1, 1)):
        return struct.pack("<QQQIIII6Q", width, height, depth, form, channels, flags, levels, *box)

    LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8
    for name, data in {
            "line": shape(64, 0, 0, 32, 1), "plane": shape(64, 64, 0, 32, 4), "volume": shape(16, 16, 16, 1, 1),
            "layers": shape(64, 64, 6, 8, 2, LAYERED), "cube": shape(64, 64, 6, 32, 4, CUBE), "cubes": shape(8, 8, 12, 1, 1, CUBE | LAYERED),
            "gather": shape(64, 64, 0, 32, 4, GATHER), "mipmapped": shape(64, 32, 0, 2, 4, SURFACE, 7),
            "levels": shape(64, 64, 64, 16, 1, 0, 99), "huge": shape(1 << 40, 1 << 40, 0, 32, 4), "largest": shape(131072, 65536, 0, 32, 4),
            "format": shape(64, 64, 0, 77, 1), "channels": shape(64, 64, 0, 32, 3), "flags": shape(64, 64, 0, 32, 4, 0xffff),
            "box": shape(64, 64, 0, 32, 4, 0, 0, (16, 3, 0, 1008, 61, 1)), "wrap": shape(64, 64, 0, 32, 4, 0, 0, (1 << 63, 0, 0, 1 << 63, 1, 1))}.items():
        put("array", name, data)

    SPARSE = 0x40
    tiling = struct.pack("<4IQ2I", 128, 128, 1, 3, 1 << 17, 0, 0)

    def tiles(tail=0, level=0, layer=0, box=(0, 0, 0, 128, 128, 1), tail_offset=0, tail_size=0, offset=0):
        return struct.pack("<5I6II3Q", 5, 6, tail, level, layer, *box, 0, tail_offset, tail_size, offset)

    plane, layers = shape(512, 512, 0, 32, 1, SPARSE), shape(512, 512, 3, 32, 1, SPARSE | LAYERED)
    levels = shape(1024, 1024, 0, 32, 1, SPARSE, 11)
    put("array", "tiles", plane + tiling + tiles(box=(128, 256, 0, 384, 256, 1)))
    put("array", "tiles_layer", layers + tiling + tiles(layer=2))
    put("array", "tiles_level", levels + tiling + tiles(level=2))
    put("array", "tiles_tail", levels + tiling + tiles(1, tail_offset=1 << 16, tail_size=1 << 16))
    put("array", "tiles_beyond", plane + tiling + tiles(box=(384, 0, 0, 256, 128, 1)))
    put("array", "tiles_wrap", plane + tiling + tiles(box=(0, 0, 0, 0xffffff80, 0xffffff80, 1)))


def make_calls():
    bytes_field = struct.pack("<II", 5, 0) + b"hello\0\0\0"
    for call in (0, 4, 7, 12, 20, 30, 44):
        for reply in (0, 1):
            put("calls", f"call{call}_{reply}", struct.pack("<HB", call, reply) + struct.pack("<8Q", *range(8)))
            put("calls", f"call{call}_{reply}_bytes", struct.pack("<HB", call, reply) + struct.pack("<2I", 1, 0) + bytes_field * 3)
    for note in range(0xff01, 0xff07):
        put("calls", f"note{note & 7}", struct.pack("<HB", note, 0) + struct.pack("<2Q", 0, 8))


def make_disk():
    for name, data in {"image": b"\2" + bytes(100), "image_of_another_hash": b"\0" + bytes(100), "empty": b"\2"}.items():
        put("disk", name, data)


def elf(sections, magic=b"\x7fELF\2\1\1"):
    """An ELF with these (name, type, size in the header, content)."""
    names, body, headers = b"\0", b"", []
    for name, kind, size, content in [*sections, (".shstrtab", 3, None, None)]:
        offset = len(names)
        names += name.encode() + b"\0"
        if content is None:
            content, size = names, len(names)
        headers.append(struct.pack("<IIQQQQIIQQ", offset, kind, 0, 0, 64 + len(body), size, 0, 0, 1, 0))
        body += content
    head = magic.ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x5a0500, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return head + body + b"".join(headers)


def make_variables():
    put("variables", "elf", elf([(".nv.global", 8, 4096, b""), (".nv.global.init", 1, 16, bytes(16)), (".text.kernel", 1, 64, b"vprintf\0malloc\0" + bytes(49))]))
    put("variables", "elf_constant", elf([(".nv.constant3", 1, 64, bytes(64)), (".nv.constant0.kernel", 1, 8, bytes(8)), (".symtab", 2, 24, struct.pack("<IBBHQQ", 1, 1, 0, 1, 0, 8))]))
    put("variables", "elf_huge", elf([(".nv.global", 8, (1 << 64) - 1, b""), (".nv.global.x", 8, 1 << 63, b"")]))
    put("variables", "elf_outside", elf([(".nv.global.init", 1, 1 << 40, b"")])[:-70])
    put("variables", "elf_names", elf([(".nv.global", 8, 16, b"")]).replace(b".shstrtab\0", b".shstrtab!"))
    for number, text in enumerate((
            ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 .b8 table[1024];\n.visible .global .u32 counter = 1;\n",
            ".version 8.0\n.target sm_75\n.global .f32 a[2][3][4], b;\n.const .b32 c[4];\n.global .texref t;\n",
            ".version 8.0\n.global .align 1 .b8 $str[4] = {104, 105, 10, 0};\n.entry k() { .shared .b32 s[4]; call malloc, (x); }\n",
            ".version 8.0\n.global .u64 a[99999999999999999999];\n.global .b8 b[18446744073709551615][2];\n", ".global", ".version 8.0\n.global .b8 x[", "// .global .u32 x;\n/* .global .u32 y;")):
        put("variables", f"ptx{number}", ".version" in text and text or ".version 8.0\n" + text)


def flat(kind, body):
    """An image as it travels (image/flat_image.c)."""
    padded = body + bytes(-len(body) % 16)
    return struct.pack("<IHHIIQQ", 0x4d495047, 1, kind, 1, 0, 48 + len(padded), 0) + struct.pack("<QQ", len(body), 0) + padded


def make_image():
    """Fatbins of one entry, with options, attributes and names."""
    def entry(kind, behind=b"", options=0, name=(0, 0), flags=0x11, size=None):
        payload = b".version 7.0\n.target sm_75\n.address_size 64\n\0\0\0\0" if kind == 1 else bytes(16)
        header = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, size or 64 + len(behind), len(payload), 0, options, 0, 7, 75, *name, flags, 0, 0)
        return header + behind + payload

    def place(offset, text, room):
        return struct.pack("<II", offset, len(text)) + text.ljust(room, b"\0")

    attributes = struct.pack("<II", 72, 16) + b"\0\2\t\0\0\4\x0b\x08\0\1".ljust(24, b"\0")
    for name, data in {
            "options": entry(1, place(72, b"-maxrregcount=40 ", 24), 64), "options_none": entry(1, bytes(8), 64),
            "options_behind_name": entry(1, b"k.cu\0\0\0\0" + place(80, b"--generate-line-info ", 24), 72, (64, 4)),
            "name_behind_options": entry(1, place(72, b"-v", 8) + b"init.cu\0", 64, (80, 7)),
            "elf_name": entry(2, b"init.cu\0", 0, (64, 7)), "elf_attributes": entry(2, attributes, 64, flags=0x1000011),
            "elf_attributes_long": entry(2, attributes.replace(b"\x0b\x08\0", b"\x0b\xff\xff"), 64, flags=0x1000011),
            "lto": entry(8, place(72, b"-ftz=0 -fmad=1 ", 16), 64, flags=0x10011), "options_nowhere": entry(1, bytes(16)),
            "options_at_end": entry(1, bytes(16), 76), "options_far": entry(1, place(1 << 31, b"", 8), 64),
            "options_long": entry(1, place(72, b"12345678", 8), 64), "name_far": entry(2, bytes(8), 0, (72, 1)),
            "header_long": entry(1, bytes(16), 64, size=1 << 20)}.items():
        put("image", name, flat(2, struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(data)) + data))


def make_params():
    def attribute(number, value, form=4):
        return bytes([form, number]) + (struct.pack("<H", len(value)) + value if form == 4 else value)

    def param(ordinal, offset, size, number=0x17):
        return attribute(number, struct.pack("<IHHI", 0, ordinal, offset, size << 18 if number == 0x17 else size))

    def total(size):
        return attribute(0x19, struct.pack("<H", size), 3)

    def kernel(name, *attributes):
        info = b"".join(attributes)
        return [(".nv.info." + name, 0x70000000, len(info), info), (".text." + name, 1, 16, bytes(16))]

    whole = kernel("k", param(1, 8, 13), param(0, 0, 8), total(21))
    elves = {"elf": whole + kernel("none"), "elf_v2": kernel("k", param(0, 0, 32764, 0x45), total(32764)), "elf_total": kernel("k", param(0, 0, 8), total(16)),
             "elf_gap": kernel("k", param(1, 8, 8)), "elf_twice": kernel("k", param(0, 0, 8), param(0, 0, 8)), "elf_far": kernel("k", param(65535, 0, 8), param(4095, 65535, 8)),
             "elf_overlap": kernel("k", param(0, 0, 8), param(1, 4, 8)), "elf_short": kernel("k", attribute(0x17, b"\0" * 11)), "elf_form": kernel("k", b"\5\x17\0\0"),
             "elf_cut": kernel("k", param(0, 0, 8)[:9]), "elf_code": [(".text.k", 1, 4, bytes(4))], "elf_size": [(".nv.info.k", 1, 1 << 40, b"")], "elf_names": [("", 1, 0, b"")] * 3}
    for name, sections in elves.items():
        put("params", name, elf(sections))
    put("params", "elf_many", elf(whole)[:60] + b"\0\0" + elf(whole)[62:])
    put("params", "flat_elf", flat(3, elf(whole)))
    start = ".version 8.0\n.target sm_75\n.address_size 64\n"
    texts = (".visible .entry k(.param .u64 a, .param .align 16 .b8 b[13], .param .u64 .ptr .global .align 8 c)\n.maxntid 32\n{ .reg .b32 r; { ret; } }\n.entry none() { }\n",
             ".entry k(.param .f32 x[0x2][3U], .param .align 8 .b64 y) { // }\n /* } */ \"}\" }", ".entry k(.param .texref t) {}", ".entry k(.param .b8 a[99999999999]) {}",
             "#define x\n.entry k {", ".file 1 \"a\\\"b\"\n.section .debug { .b8 1 }\n.entry k(/*", ".entry", ".entry k(.param .align 0 .b8 a[0], .param")
    for number, text in enumerate(texts):
        put("params", f"ptx{number}", start + text)
        put("params", f"flat_ptx{number}", flat(4, (start + text).encode() + b"\0"))
    put("params", "ptx_old", ".version 1.4\n.entry k { .param .u32 x; }")


def make_lanes():
    def copy(number, size, how=0, stream=1):
        return bytes([2, stream, how, number, size])

    def chunk(number, place, lane=1, size=None):
        how = (lane + 1) % 2
        return bytes([4, how | (2 if size is not None else 0), number, place]) + (b"" if size is None else bytes([size]))

    MIB = 1 << 5
    put("lanes", "one_chunk", copy(1, MIB) + chunk(1, 0))
    put("lanes", "chunks_first", chunk(1, MIB, 2) + chunk(1, 0) + copy(1, 2 * MIB))
    put("lanes", "odd_size", copy(1, MIB + 3) + chunk(1, MIB, 2, 3) + chunk(1, 0))
    put("lanes", "two_copies", copy(1, MIB, 2) + copy(2, MIB, 0, 3) + chunk(1, 0) + chunk(2, 0, 2))
    put("lanes", "ahead", b"".join(chunk(n, 0, 1 + n % 2, 1) for n in range(1, 19)) + b"".join(copy(n, 1) for n in range(1, 19)))
    put("lanes", "out", copy(1, 3 * MIB, 4) + copy(9, 1, 4))
    put("lanes", "both_ways", copy(1, MIB) + copy(7, 4 * MIB, 4) + chunk(1, 0))
    put("lanes", "twice", copy(1, 2 * MIB) + chunk(1, 0) + chunk(1, 0, 2))
    put("lanes", "twice_ahead", chunk(1, 0) + chunk(1, 0, 2) + copy(1, 2 * MIB))
    put("lanes", "out_of_place", copy(1, 2 * MIB) + chunk(1, 5))
    put("lanes", "too_long", copy(1, 5) + chunk(1, 0, 1, 6))
    put("lanes", "over", copy(1, 1) + chunk(1, 0, 1, 1) + chunk(1, 0, 2, 1))
    put("lanes", "wrong_number", copy(2, 1))
    put("lanes", "outside", copy(1, 0xff) + b"\0" + copy(1, 7 * MIB, 1) + b"\x60")
    put("lanes", "no_chunk", bytes([9, 5]) + b"hello")
    put("lanes", "raw", bytes([1, 16]) + struct.pack("<II", 16, 1 << 20) + struct.pack("<IIQ", 1, 0, 0)[:8])


def make_graphs():
    """Records of a session, with graphs as the bulk tail (fuzz_dispatch.c)."""
    CONTEXT = STREAM = PLAN = 0x00100001
    WINDOW = 0x110000000000

    def record(call, fields, request=0, bulk=None):
        fields += bytes(-len(fields) % 8)
        head = struct.pack("<IHHII", 16 + len(fields), call, 0 if bulk is None else 1, request, CONTEXT)
        return head + fields + (b"" if bulk is None else struct.pack("<I", len(bulk)) + bulk)

    def node(call, fields=b"", after=()):
        links = struct.pack(f"<{len(after)}I", *after)
        return struct.pack("<4I", call, len(after), len(fields), 0) + links + bytes(-len(links) % 8) + fields

    def fill(address):
        return struct.pack("<IIQQIIQQ", 0, 0, address, 64, 4, 7, 16, 1)

    def graph(call, plan, request=0):
        makes = call in (0x0a01, 0x0a08)
        return record(call, struct.pack("<II", CONTEXT, PLAN) if makes else struct.pack("<I", PLAN), request, plan)

    # A context and its stream, with the first 4 MiB of the window.
    begin = struct.pack("<IHHII", 48, 0x0101, 0, 9, 0) + struct.pack("<4I2Q", CONTEXT, 0, 8, STREAM, WINDOW, 4 << 20)
    launch = record(0x0a03, struct.pack("<II", PLAN, STREAM))
    drop = record(0x0a04, struct.pack("<I", PLAN))
    right = node(0x0304, fill(WINDOW)) + node(0, after=(0,)) + node(0x0304, fill(WINDOW + 4096), (0, 1))
    put("dispatch", "graph", begin + graph(0x0a01, right, 1) + launch + graph(0x0a02, node(0)) + launch + drop)
    put("dispatch", "graph_refused", begin + graph(0x0a01, right, 1) + graph(0x0a02, node(0x0304, fill(1))) + launch + launch + drop + launch)
    put("dispatch", "graph_twice", begin + graph(0x0a01, right, 1) + graph(0x0a01, right, 2))
    put("dispatch", "graph_left", begin + graph(0x0a01, right, 1) + launch)
    put("dispatch", "graph_of_itself", begin + graph(0x0a01, node(0, after=(0,)), 1) + launch)
    put("dispatch", "graph_of_nothing", begin + graph(0x0a01, b"", 1) + graph(0x0a02, b"") + drop)
    # Conditions: of a handle that is the session's or not, malformed, in one another, and roots that are none.
    def condition(handle, bodies, count=None):
        return node(1, struct.pack("<QIIII", handle, 1, len(bodies) if count is None else count, ROOT, 0)
                    + b"".join(struct.pack("<Q", len(body)) + body for body in bodies))

    ROOT = 0x00100007
    root, handle = record(0x0a05, struct.pack("<II", CONTEXT, ROOT)), record(0x0a06, struct.pack("<IIII", ROOT, 1, 1, 0), 5)
    end = record(0x0a07, struct.pack("<I", ROOT))
    deep = node(0)
    for _ in range(20):
        deep = condition(1, [deep])
    for name, plan in (("condition", condition(1, [right])), ("condition_empty", condition(1, [])), ("condition_deep", deep),
                       ("condition_many", condition(1, [b""] * 300)), ("condition_less", condition(1, [b""], 0x10000000))):
        put("dispatch", name, begin + root + handle + handle + graph(0x0a01, plan, 1) + launch + graph(0x0a02, plan) + launch + drop + end)
        put("graph_plan", name, plan)
    put("dispatch", "condition_no_root", begin + handle + end + root + root + handle + end + handle)
    # Graphs that kernels launch and change; a name that the driver did not assign, and an invalid launch.
    upload = record(0x0a09, struct.pack("<II", PLAN, STREAM))
    fills = node(0x0304, fill(WINDOW)) + node(0x0304, fill(WINDOW + 4096), (0,))
    changed = node(2, struct.pack("<QII", 77, ROOT, 0) + fill(WINDOW))
    put("dispatch", "launchable", begin + graph(0x0a08, fills, 1) + upload + graph(0x0a02, fills) + upload + launch + drop + upload)
    put("dispatch", "launchable_grows", begin + graph(0x0a08, fills, 1) + graph(0x0a02, fills + fills[:80]) + upload + launch)
    put("dispatch", "launchable_idle", begin + graph(0x0a08, right, 1) + graph(0x0a08, changed, 2) + upload)
    put("dispatch", "updatable", begin + root + record(0x0a0a, struct.pack("<I", ROOT), 3, node(0x0601, bytes(64)))
        + record(0x0a0a, struct.pack("<I", 9), 4, fills) + graph(0x0a01, changed, 1) + upload + end)
    put("graph_plan", "updatable", changed + node(2))
    put("dispatch", "words", begin + record(0x0424, struct.pack("<IIQQII", STREAM, 0, WINDOW, 0, 4, 1)) + launch
        + record(0x0423, struct.pack("<IIQQI", STREAM, 0, WINDOW, 1, 8)))
    put("dispatch", "words_wrong", begin + b"".join(
        record(0x0424, struct.pack("<IIQQII", stream, 0, WINDOW + at, 0, size, how))
        + record(0x0423, struct.pack("<IIQQI", stream, 0, WINDOW + at, 1, size))
        for stream, at, size, how in ((7, 0, 4, 0), (STREAM, 2, 4, 0), (STREAM, 4, 8, 0), (STREAM, 1 << 40, 4, 0), (STREAM, 0, 3, 1))))
    # Listed copies, staged or kept after a host function, and what replaces their bytes.
    listed = (record(0x0305, struct.pack("<IIQQQQII", STREAM, 0, WINDOW, 8, 8, 1, 4 | 7 << 8, 8) + b"12345678")
              + record(0x0301, struct.pack("<IIQQQQI", STREAM, 0, WINDOW + 64, 64, 16, 3, 4 | 8 << 8), 0, b"x" * 48)
              + record(0x0301, struct.pack("<IIQQQQI", STREAM, 0, WINDOW + 4096, 30000, 30000, 1, 4 | 9 << 8), 0, b"y" * 30000))
    replaced = b"".join(record(0x0313, struct.pack("<IIQII", number, 0, offset, len(data), 0) + data)
                        for number, offset, data in ((7, 2, b"abc"), (8, 0, b"z" * 48), (9, 20000, b"w" * 999), (7, 6, b"beyond"), (8, 1 << 63, b"x"), (5, 0, b"none")))
    function, done = record(0x0421, struct.pack("<II", STREAM, 9)), record(0x0422, struct.pack("<I", 9))
    put("dispatch", "replace", begin + listed + replaced + listed)
    put("dispatch", "replace_kept", begin + function + listed + replaced + done + replaced)
    put("dispatch", "replace_wrong", begin + function + listed + record(0x0313, struct.pack("<IIQII", 1 << 24, 0, 0, 1, 0) + b"x"))
    put("dispatch", "replace_nothing", begin + listed + record(0x0313, struct.pack("<IIQII", 7, 0, 0, 0, 0)))
    put("dispatch", "graph_of_many", begin + graph(0x0a01, node(0) * 4000, 1) + launch + drop)


def make_host_changes():
    def run(address, data):
        return struct.pack("<QII", address, len(data), 0) + data + bytes(-len(data) % 8)
    put("host_changes", "runs", run(0, b"abcd") + run(8, b"0123456789ab") + run(4092, b"wxyz"))
    put("host_changes", "beyond", run(4095, b"abcd") + run((1 << 64) - 8, b"1234"))
    put("host_changes", "too_far", run((1 << 64) - 4, b"12345678"))
    put("host_changes", "empty", struct.pack("<QII", 0, 0, 0))
    put("host_changes", "longer", struct.pack("<QII", 0, 0xffffffff, 0) + bytes(64))
    put("host_changes", "not_zero", struct.pack("<QII", 0, 8, 1) + bytes(8))
    put("host_changes", "masked", struct.pack("<QII", 8, 4, 0b1101) + b"\0a\0\0" + bytes(4))
    put("host_changes", "masked_beyond", struct.pack("<QII", 8, 4, 0x11) + bytes(8))
    packed = struct.pack("<QQI", 7, 4, 0xfffffffe) + b"a" * 32 + struct.pack("<I", 1) + b"b" * 64
    put("host_changes", "packed", struct.pack("<QII", 64, 96, len(packed)) + packed + bytes(-len(packed) % 8))
    put("host_changes", "packed_short", struct.pack("<QII", 64, 128, len(packed)) + packed + bytes(-len(packed) % 8))
    put("host_changes", "merged", b"\x13\0" + b"\1\2\0\3\0\0\4\5\6" * 300)
    put("host_changes", "sparse", b"\3\0" + b"\1\0\0\0\0\0\0\0" * 500)
    put("host_changes", "dense", b"\0\xff" + bytes(range(1, 256)) * 16)
    # Records of a session (fuzz_dispatch.c), at where the range of the first one lies.
    CONTEXT = STREAM = 0x00100001
    HOST, PAGES = 0x110400000000, 2 << 20

    def record(call, fields, request=0):
        fields += bytes(-len(fields) % 8)
        return struct.pack("<IHHII", 16 + len(fields), call, 0, request, CONTEXT) + fields

    def some(data):
        return struct.pack("<II", len(data), 0) + data
    begin = struct.pack("<IHHII", 48, 0x0101, 0, 9, 0) + struct.pack("<4I2Q", CONTEXT, 0, 8, STREAM, 0x110000000000, 4 << 20)
    begin += record(0x0801, struct.pack("<Q", 1 << 40), 1)
    for name, host in (("here", HOST), ("elsewhere", HOST + (1 << 32))):
        put("dispatch", "host_" + name, begin + record(0x0802, struct.pack("<QQI", host, PAGES, 0), 2)
            + record(0x0804, some(run(host + 4, b"abcd" * 5))) + record(0x0805, some(struct.pack("<QQ", host, PAGES)), 3)
            + record(0x0304, struct.pack("<IIQQIIQQ", STREAM, 0, host, 64, 4, 7, 16, 1))
            + record(0x0803, struct.pack("<QQ", host, PAGES), 4) + record(0x0802, struct.pack("<QQI", host, PAGES, 1), 5))

def make_trace():
    def event(begin, end, kernel=0, stream=1, call=0x0304, joined=0, name=b""):
        fields = struct.pack("<3Q4II", begin, end, kernel, stream, 0, call, joined, len(name))
        fields += bytes(-len(fields) % 8) + name
        return fields + bytes(-len(fields) % 8)

    kernel = 0x1000100000002
    put("trace", "work", event(9, 12) + event(12, 99, stream=2) + event(8, 10, joined=3))
    put("trace", "names", event(9, 12, kernel, call=0x0601, name=b"_Z3addv") + event(13, 15, kernel, call=0x0601) +
        event(15, 15, kernel + 1024, call=0x0602, name=b'"\\\n\xff\0x'))
    put("trace", "backwards", event(9, 8))
    put("trace", "huge", event(1, 2**64 - 1) + event(2**63, 2**64 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1))
    put("trace", "long_name", event(1, 2, kernel, name=b"x" * 4097))
    put("trace", "cut", event(1, 2, kernel, name=b"kernel")[:-9])


def make_lane_in():
    def chunk(copy, offset, size, lane=1, more=b"", how=0):
        return bytes([2 | (lane - 1) << 4, copy | how]) + bytes([offset]) + more + bytes([size])

    put("lane_in", "whole", chunk(0, 0, 210) + chunk(0, 210, 0) + chunk(1, 0, 63))
    put("lane_in", "two_lanes", chunk(0, 0, 100) + chunk(0, 100, 110, 2) + chunk(1, 1, 5, 2))
    put("lane_in", "outside", chunk(1, 63, 100))
    put("lane_in", "far_outside", b"\2\1\xff\0\1")
    put("lane_in", "another_copy", chunk(0, 0, 9, 1, b"\7", 2))
    put("lane_in", "reserved", chunk(0, 0, 9, 1, b"\1", 4))
    put("lane_in", "empty", chunk(0, 0, 0))
    put("lane_in", "no_chunk", b"\0\5hello\0" + chunk(0, 0, 9))
    put("lane_in", "no_message", b"\1\0\0" + chunk(0, 0, 9))
    put("lane_in", "closed", chunk(0, 0, 9) + b"\xfa" + chunk(0, 9, 9, 2))
    put("lane_in", "again", chunk(1, 0, 60) * 3)


def make_link():
    def with_size(data):
        return struct.pack("<H", len(data)) + data

    with open(os.path.join(FOLDER, "welcome", sorted(os.listdir(os.path.join(FOLDER, "welcome")))[0]), "rb") as file:
        welcome = file.read()
    preamble = b"GPUPOOL1" + struct.pack("<HHHH", 1, 0, 0, 0) + bytes(48)
    for name in sorted(os.listdir(os.path.join(FOLDER, "welcome"))):
        with open(os.path.join(FOLDER, "welcome", name), "rb") as file:
            put("link", "welcome_" + name, b"\0" + with_size(file.read()))
    put("link", "refused", b"\0" + with_size(b"\x1a\x08\x08\4\x12\4full"))
    put("link", "error", b"\0" + with_size(b"\x32\x08\x08\7\x12\4over"))
    put("link", "window", b"\0" + with_size(welcome) + with_size(b"\x2a\x0b\x0a\x09\x08\x80\x80\x80\x80\x80\xa0\4\x10"))
    put("link", "pong", b"\0" + with_size(b"\x4a\2\x08\7") + with_size(welcome))
    put("link", "version", b"\1" + preamble.replace(b"\1\0\0\0\0\0\0\0", b"\2\0\0\0\0\0\0\0", 1))
    put("link", "foreign", b"\1" + b"HTTP/1.1 400 Bad Request".ljust(64, b" "))
    put("link", "tls", b"\1" + preamble[:12] + b"\2" + preamble[13:])
    put("link", "bytes", b"\0\xff\xff" + struct.pack("<II", len(welcome), 0) + welcome)
    put("link", "too_large", b"\0\xff\xff" + struct.pack("<II", 262145, 0))
    put("link", "cut", b"\0\xff\xff" + struct.pack("<II", len(welcome), 0) + welcome[:-9])
    put("link", "bulk", b"\0\xff\xff" + struct.pack("<II", len(welcome), 3) + welcome + b"abc")
    put("link", "nothing", b"\0")


def make_peer():
    PREAMBLE, HELLO, BYTES, END, OPEN, TIME, MESSAGE = range(7)

    def do(what, data=b"", conn=0):
        return bytes([what | conn << 4]) + struct.pack("<H", len(data)) + data

    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data if isinstance(data, bytes) else bytes([number << 3, data])

    def inside(data):
        return b"\x0a" + bytes([len(data)]) + data

    time = do(TIME)
    lane = lambda number, nth=0, conn=1: do(PREAMBLE, bytes([0x81, number, nth, 0]), conn)
    put("peer", "hello", do(HELLO) + time + do(MESSAGE, b"\x3a\0"))
    put("peer", "lane", do(HELLO) + lane(0) + time + lane(1, 0, 2) + time + lane(1, 0, 3) + time)
    put("peer", "lane_first", do(HELLO) + lane(1) + time + lane(9, 0, 2) + time)
    put("peer", "ping", do(HELLO) + do(MESSAGE, field(8, field(1, 7))) * 20 + time)
    put("peer", "window", do(HELLO) + do(MESSAGE, field(4, b"")) + time + do(MESSAGE, field(4, field(1, field(1, 1) + field(2, 9)))) + time)
    put("peer", "windows", do(HELLO) + do(MESSAGE, field(4, b"")) * 9 + time)
    put("peer", "window_late", do(HELLO) + lane(0) + time + do(MESSAGE, field(4, b"")) + time)
    put("peer", "two_hellos", do(HELLO) + do(MESSAGE, inside(b"")) + time)
    put("peer", "no_hello", do(PREAMBLE, b"\0\0\0\0") + do(MESSAGE, field(8, b"")) + time)
    put("peer", "many", b"".join(do(HELLO, b"", n) for n in range(4)) + lane(0, 1, 0) + time + lane(0, 2, 0) + time)
    put("peer", "fields", do(HELLO, inside(field(3, b"h") + field(9, b"tenant") + field(10, 3) + field(11, 2))) + time)
    put("peer", "wish", do(HELLO, inside(field(13, field(1, 50) + field(2, 1) + field(3, field(1, 0) + field(2, 99))))) + time)
    put("peer", "avoid", do(HELLO, inside(field(8, field(1, 9) + field(2, 99)) * 9)) + time)
    put("peer", "resume", do(HELLO, inside(field(12, bytes(32)))) + time)
    put("peer", "tls", do(PREAMBLE, b"\2\0\0\0") + time + do(PREAMBLE, b"\3\0\0\0", 1) + time)
    put("peer", "version", do(PREAMBLE, b"\x40\0\x11\x08") + do(PREAMBLE, b"\x40\0\x01\x01", 1) + time)
    put("peer", "half", do(OPEN) + do(BYTES, b"GPUPOOL1\1\0") + do(END) + do(OPEN, b"", 1) + do(BYTES, bytes(200), 1) + time)
    put("peer", "too_large", do(HELLO) + do(BYTES, struct.pack("<II", 262145, 0)) + time)
    put("peer", "bulk", do(HELLO) + do(BYTES, struct.pack("<II", 2, 9) + b"\x3a\0" + bytes(9)) + time)
    put("peer", "gone", do(HELLO) + do(END) + lane(0) + time)
    look = inside(field(5, 7) + b"\x80\x01\x01")
    put("peer", "look", do(HELLO, look) + time)
    put("peer", "look_beside", do(HELLO) + lane(0) + time + do(HELLO, look, 2) + time + do(HELLO, look, 3) + time)


def make_ipc():
    """Records of a session that shares what it has, and opens it (fuzz_dispatch.c)."""
    CONTEXT, STREAM, EVENT, SHARE, WINDOW = 0x00100001, 0x00100001, 5, 7, 0x110000000000

    def record(call, fields, request=0):
        fields += bytes(-len(fields) % 8)
        return struct.pack("<IHHII", 16 + len(fields), call, 0, request, CONTEXT) + fields

    def opening(call, fields, handle, request):
        return record(call, fields + struct.pack("<I", len(handle)) + handle, request)

    def handle(kind):
        return b"gpIP" + struct.pack("<BBHQII16s3Q", kind, 0, 0, 0, 1, 1, bytes(16), 4 << 20, 0, 512)

    begin = struct.pack("<IHHII", 48, 0x0101, 0, 9, 0) + struct.pack("<4I2Q", CONTEXT, 0, 8, STREAM, WINDOW, 4 << 20)
    share = record(0x0211, struct.pack("<IIQQ", SHARE, 0, WINDOW, 512), 1)
    drop = record(0x0212, struct.pack("<I", SHARE))
    unmap = record(0x0202, struct.pack("<QQ", WINDOW, 4 << 20))
    event = record(0x0411, struct.pack("<II", EVENT, 6)) + record(0x0417, struct.pack("<I", EVENT), 2)
    mark = record(0x0419, struct.pack("<III", EVENT, STREAM, 0), 3)
    memory = opening(0x0213, struct.pack("<QQi", WINDOW + (8 << 20), 4 << 20, 0), handle(1), 4)
    other = opening(0x0418, struct.pack("<I", EVENT + 1), handle(2), 5)
    put("dispatch", "ipc_memory", begin + share + memory + drop + unmap + memory)
    physical = record(0x0205, struct.pack("<IIQi", 5, 0, 2 << 20, 0), 6) + record(0x0214, struct.pack("<II", SHARE, 5), 7)
    opened = opening(0x0215, struct.pack("<IIQi", 6, 0, 2 << 20, 0), handle(3), 8)
    put("dispatch", "ipc_physical", begin + physical + opened + record(0x0206, struct.pack("<I", 5)) + drop + opened)
    pool = record(0x0216, struct.pack("<Ii", SHARE + 1, 0), 6)
    part = record(0x0218, struct.pack("<IIQQ", SHARE, SHARE + 1, WINDOW, 4 << 20), 7)
    asked = opening(0x0217, struct.pack("<i", 0), handle(4), 8)
    put("dispatch", "ipc_pool", begin + pool + part + asked + drop + unmap + part)
    put("dispatch", "ipc_memory_left", begin + share + unmap)
    put("dispatch", "ipc_twice", begin + share + share)
    put("dispatch", "ipc_event", begin + event + mark + other + mark + record(0x0415, struct.pack("<I", EVENT)) + other)
    put("dispatch", "ipc_event_left", begin + event + mark)
    put("dispatch", "ipc_short", begin + opening(0x0213, struct.pack("<QQi", WINDOW, 4 << 20, 0), b"gpIP", 1))


def make_sparse():
    """Records of a session with sparse arrays (fuzz_dispatch.c)."""
    CONTEXT, STREAM, WINDOW, ARRAY, MEMORY = 0x00100001, 0x00100001, 0x110000000000, 5, 6

    def record(call, fields, request=0):
        fields += bytes(-len(fields) % 8)
        return struct.pack("<IHHII", 16 + len(fields), call, 0, request, CONTEXT) + fields

    def put_tiles(tiles, request):
        return record(0x0284, struct.pack("<II", STREAM, len(tiles)) + tiles, request)

    def tiles(memory=MEMORY, width=32768, height=2, offset=0):
        return struct.pack("<12I3Q", ARRAY, memory, 0, 0, 0, 0, 0, 0, width, height, 1, 0, 0, 0, offset)

    begin = struct.pack("<IHHII", 48, 0x0101, 0, 9, 0) + struct.pack("<4I2Q", CONTEXT, 0, 8, STREAM, WINDOW, 4 << 20)
    array = record(0x0281, struct.pack("<IiQQQIIII", ARRAY, 0, 32768, 2, 0, 3, 1, 0x40, 0), 1)
    memory = record(0x021a, struct.pack("<IIQi", MEMORY, 0, 2 << 20, 0), 2)
    asked = record(0x0283, struct.pack("<I", ARRAY), 3)
    gone = record(0x0282, struct.pack("<I", ARRAY)), record(0x0206, struct.pack("<I", MEMORY))
    put("dispatch", "sparse", begin + array + memory + asked + put_tiles(tiles(), 4) + put_tiles(tiles(0), 5) + gone[0] + gone[1])
    put("dispatch", "sparse_many", begin + array + memory + put_tiles(tiles(offset=1 << 16) * 40, 4) + gone[1] + put_tiles(tiles(0), 5))
    put("dispatch", "sparse_left", begin + array + memory + put_tiles(tiles(), 4) + put_tiles(tiles(width=1), 5))
    put("dispatch", "sparse_short", begin + array + memory + put_tiles(tiles()[:40], 4) + put_tiles(b"", 5))


def make_ctl():
    def field(number, value):
        def varint(n):
            out = b""
            while n >= 128:
                out, n = out + bytes([n & 127 | 128]), n >> 7
            return out + bytes([n])
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        value = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(value)) + value

    ALL = (1 << 64) - 1
    counts = b"".join(field(n, 7 * n) for n in range(1, 8))
    line = lambda device: b"".join(field(n, v) for n, v in enumerate((device, 1 << 20, ALL, 2 << 20, 5000000, 66, 66, 1, 50, 50), 1))
    worker = field(1, 4711) + field(2, 1) + field(3, 1)
    device = lambda n: field(1, n) + field(2, "device") + field(3, bytes(range(16))) + field(4, 1 << 34) + field(5, 1 << 20) + field(6, 132) + field(7, 2) + field(8, 1) + field(9, 10**9)
    tenant = field(1, "default") + field(2, 1) + field(3, 9) + field(4, 0) + field(5, ALL) + field(6, counts) + field(7, line(0)) + field(7, line(1))
    session = lambda dev: (field(1, 42) + field(2, "default") + field(3, 4711) + field(4, 1) + field(5, 1700000000) + field(6, "host") + field(7, "user") +
                           field(8, 99) + field(9, "program") + field(10, "tcp://10.0.0.1:1") + field(11, 2) + field(12, counts) + field(13, line(dev)) + field(14, "user"))
    unit = field(1, 1) + field(2, 1) + field(3, 4) + field(4, 42) + field(5, 1 << 30) + field(6, 16)
    report = lambda dev: (field(1, "0.1") + field(2, 4710) + field(3, 1700000000) + field(5, 256) + field(8, 13000) + field(9, worker) + field(10, device(0)) +
                          field(10, device(1)) + field(11, tenant) + field(12, session(dev)) + field(13, unit) + field(14, field(1, "no_credentials") + field(2, 3)))
    good = field(2, report(1))
    for number, words in enumerate((
            "status", "device list", "client list", "client show 42", "tenant list", "client set 42 memory=10% sm=50% priority=low", "client terminate 42",
            "tenant set default memory=1G weight=2 limit=50% share=25% bandwidth=1G", "worker list", "worker replace 4711", "worker replace 4711 --terminate")):
        put("ctl", f"good{number:02}", ("012"[number % 3] + words + "\n").encode() + good)
    put("ctl", "client_of_device_9", b"0client list\n" + field(2, report(9)))
    put("ctl", "client_of_no_device", b"0client list\n" + field(2, report(1 << 31)))
    put("ctl", "no_report", b"0status\n")
    put("ctl", "empty_report", b"0status\n" + field(2, b""))
    put("ctl", "no_counts", b"0client show 42\n" + field(2, field(10, device(0)) + field(12, field(1, 42))))
    put("ctl", "no_device_known", b"0device list\n" + field(2, field(13, unit)))
    put("ctl", "error", b"0client list\n" + field(1, "no such client \x1b[2J"))
    put("ctl", "too_long", b"0status\n\xff\xff\xff\xff\x7f")
    put("ctl", "cut", b"0status\n\xff\x40\0\0\0" + good[:20])


def make_certificate(maker):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([maker, folder], check=True)
        read = lambda name: open(os.path.join(folder, name), "rb").read()
        server, key, ca = read("server.pem"), read("server.key"), read("ca.pem")
    for name, data in {"server": server + key, "chain": server + ca + key, "no_key": server, "other_key": ca + key, "key": key,
                       "cut": (server + key)[:-60], "twice": server + server + key + key, "damaged": server.replace(b"A", b"B", 3) + key,
                       "text": b"-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n"}.items():
        put("certificate", name, data)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if len(sys.argv) > 2:
        FOLDER = sys.argv[2]
    for make in (make_rdma, make_tls_bulk, make_url, make_array, make_calls, make_ctl, make_disk, make_graphs, make_host_changes, make_image, make_ipc, make_lane_in, make_lanes, make_link, make_params, make_peer, make_shm, make_sparse, make_trace, make_variables):
        make()
    # Keys are new ones each time.
    if not os.path.exists(os.path.join(FOLDER, "certificate")):
        make_certificate(sys.argv[1])
