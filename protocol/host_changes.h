/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of replicated host memory: memory of the client with a replica in the worker, at the same
 * address (docs/host-memory.md). Each end also has a shadow of its copy, the content on which both
 * ends last agreed. The sending end finds the words of 4 bytes that differ between its copy and its
 * shadow (host_diff_scan.h), as runs (ranges of consecutive changed words), and orders the runs so
 * that flags come after their data (host_consistent_copy.h). The receiving end stores the runs in
 * its copy and its shadow, in the order of arrival. This header has the format of runs, and the
 * accesses to memory that change concurrently.
 *
 * Format: a run is an address (u64), a size in bytes (u32), 0 (u32) and its bytes, padded to 8. If
 * single bytes of its words are unchanged, a mask or a packed size is in place of the 0
 * (host_merge.h).
 *
 * Other threads and a GPU may write a copy while the functions below read it or store to it. The
 * functions access an aligned word of 4 bytes as a whole, so that no value is a mixture of two.
 *
 * Ownership: all memory is the caller's.
 * Threads: any; one thread at a time per struct gp_changes and per shadow.
 * Units: bytes, unless noted.
 */
#ifndef GP_PROTOCOL_HOST_CHANGES_H
#define GP_PROTOCOL_HOST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the messages of codegen/api/host.h.
 *
 * Maximum size of the encoded runs in a record of the client, which sends several records for more.
 * The worker does not check it. */
#define GP_CHANGES_MAX ((size_t)96 << 10)
/* Maximum number of ranges of a gpHostTake. The worker checks this limit and the following ones. */
#define GP_HOST_RANGES_MAX 4096
/* Limits of a gpHostTakeBehind (requests the changes when earlier work has completed) and of a
 * gpHostTakeChanged (requests the changes as soon as there are any): total bytes and number of the
 * ranges. While a thread of the session scans the ranges, other replies wait; a scan of this size
 * takes about 0.1 ms. A reply can contain changes of this size. */
#define GP_HOST_AFTER_MAX ((uint64_t)1 << 20)
#define GP_HOST_AFTER_RANGES 256
/* Limits of a session's pending gpHostTakeChanged calls: their number, and the milliseconds after
 * which each gets a reply even if nothing has changed. */
#define GP_HOST_PENDING_MAX 64
#define GP_HOST_PENDING_MS 100
/* Limits of the format.
 *
 * Maximum size of a run that may be a flag, which announces data in other runs.
 * gp_consistent_copy_build() puts such runs after all longer ones. */
#define GP_CHANGES_SHORT 8
/* Maximum size of a run that may have a mask of unchanged bytes in its head. */
#define GP_CHANGES_MASKED 32

/* Kind of the object whose earlier work a gpHostTakeBehind waits for. */
enum gp_host_after {
	GP_HOST_AFTER_STREAM,
	GP_HOST_AFTER_EVENT,
	GP_HOST_AFTER_CONTEXT,
};

/* A range of replicated memory. Copy and shadow have the same alignment to 8 as the address. */
struct gp_changes_range {
	uint64_t address;
	/* this end's copy of the memory, and its shadow */
	void *copy, *shadow;
	size_t size;
	/* Bitmap of earlier runs (host_run_bitmap.h), whose first byte covers the 32 aligned bytes
	 * that contain `address`; NULL: none. */
	uint8_t *run_bitmap;
};

/* A buffer of encoded runs: `size` bytes are used, of a memory of `capacity` bytes. `bytes` is
 * aligned to 8. */
struct gp_changes {
	uint8_t *bytes;
	size_t size, capacity;
};

/* Size of a run's head. */
#define GP_CHANGES_HEAD 16

/* Returns the bytes that a run of this size occupies. */
static inline size_t
gp_changes_get_run_size(size_t size)
{
	return GP_CHANGES_HEAD + ((size + 7) & ~(size_t)7);
}

/* Appends a run without a mask. The caller ensures that the capacity suffices
 * (gp_changes_get_run_size()), that size is not 0, and that the bytes do not change during the
 * call. */
void gp_changes_write(struct gp_changes *changes, uint64_t address, const void *bytes, size_t size);

/* Appends the content of a range from an offset on, at most its size, as a run, whether or not it
 * differs from the shadow, and copies the content to the shadow. Returns the number of bytes of the
 * range that were appended, which the capacity may limit; 0: none fit. */
size_t gp_changes_write_all(struct gp_changes *changes, const struct gp_changes_range *range,
			    size_t offset);
/* Appends runs of `all` while they fit, from the run at offset *at without its first *skip bytes. A
 * run of more than GP_CHANGES_SHORT bytes that does not fit is divided, unless it has unchanged
 * bytes or less than 1 KiB would fit. `all` contains valid runs. *at and *skip, initially 0, are
 * advanced to the first byte that was not appended. Returns whether anything was appended. */
bool gp_changes_move(struct gp_changes *changes, const struct gp_changes *all, size_t *at,
		     size_t *skip);

/* A decoded run; `bytes` is borrowed from the encoded runs. */
struct gp_change {
	uint64_t address;
	const void *bytes;
	uint32_t size; /* never 0 */
	/* Mask of the unchanged bytes: bit i is set if byte i keeps the receiver's value. 0 if
	 * `size` exceeds GP_CHANGES_MASKED. */
	uint32_t same;
	uint32_t packed; /* size of the packed bytes (host_merge.h); 0: not packed */
};

/* Decodes the run at offset *at and advances *at to the next one. The bytes may come from the
 * network. Returns 1; 0 at the end; or -1 if the run is malformed. *change is undefined unless 1 is
 * returned. Does not check packed bytes (gp_merge_is_valid()), nor whether the addresses are the
 * session's. */
int gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change);

/* Returns whether bytes that come from the network consist of valid runs only, packed ones
 * included; true if there are none. The caller checks the addresses. */
bool gp_changes_are_valid(const void *bytes, size_t size);

/* Calls store() for each run, in order. gp_changes_are_valid() must have accepted the bytes.
 * *change is valid during the call of store(). Packed runs are passed in parts that are not packed,
 * so only runs of at most GP_CHANGES_MASKED bytes have unchanged bytes. */
void gp_changes_for_each(const void *bytes, size_t size,
			 void (*store)(void *arg, const struct gp_change *change), void *arg);

/* Returns the size of the access with which gp_changes_store() and gp_changes_load() copy the next
 * bytes at the address `at` of the memory that changes: 8, 4 or 1. left: bytes still to be
 * copied. */
size_t gp_changes_get_unit(const void *at, size_t left);
/* Copies from private memory to memory that other threads or a GPU access concurrently, in
 * ascending order. */
void gp_changes_store(void *to, const void *from, size_t size);
/* Copies from memory that other threads or a GPU access concurrently to private memory, in
 * ascending order. */
void gp_changes_load(void *to, const void *from, size_t size);
/* Returns true if each word of `copy`, read once, was equal to the shadow. Returns false if one
 * differs, and always if an address or the size is not a multiple of 8. The shadow must not change
 * during the call. */
bool gp_changes_compare_equal(const void *copy, const void *shadow, size_t size);
/* Copies like gp_changes_load(), in descending order. */
void gp_changes_load_reverse(void *to, const void *from, size_t size);

#endif /* GP_PROTOCOL_HOST_CHANGES_H */
