/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code in the forms that CUDA programs pass to the driver: a fatbin wrapper, a bare fatbin,
 * an ELF cubin or PTX text. A fatbin is a container of entries, each with code for one
 * architecture; a wrapper points to one or more fatbins. struct gp_image is a validated view of
 * device code in one of these forms. gp_image_create() makes it from a pointer in the calling
 * process (sizes unknown), gp_image_open() from flat bytes that were received (untrusted).
 *
 * Words: the form of an image (enum gp_image_kind) is one of the four above; gp_image_kind()
 * returns it for a pointer, gp_image_type() for a struct gp_image. The kind of an entry (enum
 * gp_fatbin_kind) is PTX, ELF or LTO IR. Extraction is reading an entry's payload, with
 * decompression (unpacking) if it is compressed.
 *
 * Ownership: an image borrows the memory from which it was made, which must outlive it; the creator
 * frees the image with gp_image_destroy(). Entries point into their fatbin.
 * Threads: one thread at a time per object.
 * Errors: functions that return int return 0, or an error that the function's comment names:
 * -EBADMSG: malformed; -EFBIG: a limit is exceeded; -ENOMEM; or a positive GP_IMAGE_E_*. The reason
 * for an -EBADMSG is in gp_image_get_error(), unless noted. Output parameters are undefined after
 * an error.
 * Units: bytes.
 */
#ifndef GP_FATBIN_H
#define GP_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of an image, and of each fatbin in it. */
#define GP_IMAGE_SIZE_MAX (UINT64_C(2) << 30)
/* Maximum number of fatbins of a wrapper; NCCL's wrapper has 127 in addition to the first. */
#define GP_IMAGE_BLOBS_MAX 65536u
/* Required alignment of flat bytes in memory, because the driver requires aligned fatbins. */
#define GP_IMAGE_ALIGN 16u

enum {
	GP_IMAGE_E_END = 1,  /* the last entry was already returned */
	GP_IMAGE_E_NONE = 2, /* nothing in the image runs on the device */
};

/* Form of an image. Values are part of the wire protocol. */
enum gp_image_kind {
	GP_IMAGE_UNKNOWN = 0,
	GP_IMAGE_WRAPPER = 1,
	GP_IMAGE_FATBIN = 2,
	GP_IMAGE_ELF = 3,
	GP_IMAGE_PTX = 4,
};

/* A fatbin, an ELF or PTX text, borrowed from an image. */
struct gp_image_blob {
	const uint8_t *data;
	size_t size;
};

struct gp_image;

/* The device for which code is selected. */
struct gp_image_target {
	/* compute capability of a GPU */
	unsigned int major;
	unsigned int minor;
	/* the software device, which runs only PTX; major and minor are then unused */
	bool software;
};

/* Kinds of code of a fatbin entry, with the values in its header. */
enum gp_fatbin_kind {
	GP_FATBIN_PTX = 1,
	GP_FATBIN_ELF = 2,
	GP_FATBIN_LTO_IR = 8,
};

/* Flags of a fatbin entry, with the values in its header. */
enum gp_fatbin_flag {
	GP_FATBIN_DEBUG = 0x2,
	GP_FATBIN_LZ4 = 0x2000,  /* the payload is compressed with LZ4 */
	GP_FATBIN_ZSTD = 0x8000, /* the payload is compressed with Zstandard */
	/* sm_90a: the code runs only on this compute capability */
	GP_FATBIN_ARCH_SPECIFIC = 0x100000,
	/* sm_100f: the code runs only on this major version */
	GP_FATBIN_FAMILY_SPECIFIC = 0x200000,
};

/* A fatbin entry; its pointers refer to the fatbin. */
struct gp_fatbin_entry {
	const uint8_t *start; /* the entry's header */
	size_t size;          /* size of header and payload */
	unsigned int kind;    /* enum gp_fatbin_kind, or an unknown kind */
	unsigned int sm;      /* compute capability that the code is for, as 10 * major + minor */
	uint64_t flags;       /* enum gp_fatbin_flag, and unknown flags */
	const uint8_t *payload;
	size_t stored_size; /* size of the payload in the fatbin; without the padding if it is
			       compressed */
	size_t raw_size;    /* size of the payload after decompression */
	const char *name;   /* source file, name_size bytes without a NUL; NULL: not recorded */
	size_t name_size;
};

/*
 * Callbacks that limit the extraction of device code, because a few bytes can expand to very many.
 * Embedded in a struct of its owner, which must outlive the calls that use it.
 *
 * Threads: one extraction at a time per limiter: enter() is not called again before leave(). The
 * callbacks run in the thread of the call.
 */
struct gp_unpack_limiter {
	/* Called before `size` bytes of an entry are extracted, also if it is not compressed; may
	 * wait. Returns 0; -EDQUOT: exceeds the session's limit; -ECANCELED: canceled while it
	 * waited. leave() is not called after an error of enter(). */
	int (*enter)(struct gp_unpack_limiter *limiter, uint64_t size);
	/* Called with the same size after the extracted bytes were freed, or the extraction has
	 * failed. */
	void (*leave)(struct gp_unpack_limiter *limiter, uint64_t size);
	/* While true, decompression fails with -ECANCELED; checked repeatedly meanwhile. NULL:
	 * cannot be canceled. */
	const _Atomic bool *stop;
};

/* Position in a fatbin, set by gp_fatbin_walk(). */
struct gp_fatbin_walk {
	const uint8_t *next;
	const uint8_t *end;
};

/* Returns the form of an image by its first bytes. image: a pointer in this process, to at least
 * four bytes or to a NUL-terminated text. */
enum gp_image_kind gp_image_kind(const void *image);

/* Stores the size of a bare fatbin, of an ELF, or of PTX text including its NUL; for a wrapper, the
 * sum over its fatbins. image: a pointer in this process. Returns 0; or -EBADMSG, without a reason;
 * for a wrapper, the result of gp_image_create(). */
int gp_image_size(const void *image, size_t *size_p) __attribute__((warn_unused_result));

/* Creates a view of the image that the application passed to cuLibraryLoadData() or
 * cuModuleLoadData(), and validates it. Returns 0, and the caller frees *image_p with
 * gp_image_destroy(); -EBADMSG; -EFBIG: larger than GP_IMAGE_SIZE_MAX; or -ENOMEM. */
int gp_image_create(const void *image, struct gp_image **image_p)
	__attribute__((warn_unused_result));

/* Creates a view of the output of gp_image_flatten(), which may have been tampered with, and
 * validates it. bytes: aligned to GP_IMAGE_ALIGN. Returns 0, and the caller frees *image_p with
 * gp_image_destroy(); -EBADMSG; or -ENOMEM. */
int gp_image_open(const void *bytes, size_t size, struct gp_image **image_p)
	__attribute__((warn_unused_result));

/* Returns the reason for the last -EBADMSG that a function of image/ returned in this thread, as
 * the end of a sentence: "... refused: REASON". The text is thread-local, and valid until the
 * thread's next call of such a function, even if that succeeds. */
const char *gp_image_get_error(void);

/* Frees the view, not the image's bytes. Accepts NULL. */
void gp_image_destroy(struct gp_image *image);

/* Returns the form of the image. */
enum gp_image_kind gp_image_type(const struct gp_image *image);

/* Returns the number of fatbins of a wrapper, or 1 for the other forms. */
unsigned int gp_image_count(const struct gp_image *image);
/* Returns fatbin i of a wrapper, or the whole of another form; borrowed. i: below
 * gp_image_count(). */
struct gp_image_blob gp_image_blob(const struct gp_image *image, unsigned int i);

/*
 * Serializes an image to contiguous bytes, which depend only on image and target. target NULL: all
 * entries are contained; otherwise fatbin entries are omitted as by gp_fatbin_filter(). Returns 0,
 * and the caller frees *bytes_p with free(); GP_IMAGE_E_NONE: the device can use nothing of the
 * image (the driver would return CUDA_ERROR_NO_BINARY_FOR_GPU); or -ENOMEM.
 */
int gp_image_flatten(const struct gp_image *image, const struct gp_image_target *target,
		     void **bytes_p, size_t *size_p) __attribute__((warn_unused_result));

/* Returns the pointer to pass to the driver, valid until the image is destroyed. A wrapper is
 * rebuilt within the object. */
const void *gp_image_driver_pointer(const struct gp_image *image);

/* Starts a walk over the entries of a fatbin, and validates the fatbin's header. Returns 0; or
 * -EBADMSG, without a reason, if it is not a fatbin of exactly `size` bytes. */
int gp_fatbin_walk(struct gp_fatbin_walk *walk, const void *fatbin, size_t size)
	__attribute__((warn_unused_result));

/* Stores the next entry. walk: set by a gp_fatbin_walk() that has returned 0. Returns 0;
 * GP_IMAGE_E_END after the last one; -EBADMSG: the entry's header is invalid and must not be passed
 * to the driver. The walk cannot be continued after an error. */
int gp_fatbin_next(struct gp_fatbin_walk *walk, struct gp_fatbin_entry *entry_p)
	__attribute__((warn_unused_result));

/* Validates the header of a fatbin and the headers of all its entries. Returns 0; or -EBADMSG, with
 * a reason only for an entry. */
int gp_fatbin_check(const void *fatbin, size_t size) __attribute__((warn_unused_result));

/* Validates, as gp_fatbin_check(), each fatbin that is embedded in other bytes, such as an object
 * file or a library. begins: the bytes must begin with a fatbin. Returns 0, also if there is no
 * fatbin, or -EBADMSG. */
int gp_fatbin_check_embedded(const void *bytes, size_t size, bool begins)
	__attribute__((warn_unused_result));

/* Stores the payload, decompressed if necessary, with a NUL after it that *size_p does not include.
 * limit: maximum decompressed size. Returns 0, and the caller frees *bytes_p with free(); -EFBIG:
 * larger than limit or 2 GiB, by the entry's header; -EBADMSG, without a reason: it cannot be
 * decompressed; or -ENOMEM. */
int gp_fatbin_extract(const struct gp_fatbin_entry *entry, size_t limit, void **bytes_p,
		      size_t *size_p) __attribute__((warn_unused_result));

/* Extracts an entry as gp_fatbin_extract(), admitted by a limiter (NULL: none), in which it blocks;
 * the caller frees *bytes_p with gp_fatbin_release(). -EFBIG is returned before enter() is called.
 * With a limiter it also returns -EDQUOT or -ECANCELED, from the limiter; and -ENOEXEC: a
 * compressed entry of machine code does not begin as a GPU ELF, which is detected before the rest
 * is decompressed. */
int gp_fatbin_extract_limited(const struct gp_fatbin_entry *entry, size_t limit,
			      struct gp_unpack_limiter *limiter, void **bytes_p, size_t *size_p)
	__attribute__((warn_unused_result));
/* Frees bytes of gp_fatbin_extract_limited() and calls leave() of the limiter. limiter: the same
 * limiter, or NULL. size: as returned with the bytes. */
void gp_fatbin_release(struct gp_unpack_limiter *limiter, void *bytes, size_t size);

/* Returns whether the device can use the entry, by kind, version and flags: machine code of its
 * major version and at most its minor version, and PTX of at most its version; the software device
 * any PTX and nothing else. An arch-specific entry needs exactly its version, a family-specific one
 * its major version. */
bool gp_fatbin_usable(const struct gp_fatbin_entry *entry, const struct gp_image_target *target);

/* Selects the machine code with the highest version among the entries that the device can use.
 * Returns true with *entry_p set, or false if there is none. An invalid entry ends the search. */
bool gp_fatbin_best_code(struct gp_image_blob fatbin, const struct gp_image_target *target,
			 struct gp_fatbin_entry *entry_p);

/* Selects the PTX for the device: for a GPU the highest version that it supports, for the software
 * device the lowest. Generic PTX takes precedence over arch-specific and family-specific PTX.
 * Returns 0; GP_IMAGE_E_NONE: there is none; or -EBADMSG. */
int gp_fatbin_best_ptx(struct gp_image_blob fatbin, const struct gp_image_target *target,
		       struct gp_fatbin_entry *entry_p) __attribute__((warn_unused_result));

/*
 * Copies a fatbin to out, which has space for the whole fatbin, without the entries that the device
 * cannot use, and without generic PTX other than that of gp_fatbin_best_ptx()'s version. If no
 * entry would be left, *usable_p is false and the smallest entry is retained, so that the driver
 * reports a fatbin without a suitable binary and not a malformed one. *size_p: bytes written.
 * Returns 0 or -EBADMSG.
 */
int gp_fatbin_filter(struct gp_image_blob fatbin, const struct gp_image_target *target,
		     uint8_t *out, size_t *size_p, bool *usable_p)
	__attribute__((warn_unused_result));

/*
 * Stores the PTX text that the software device runs for fatbin i, with a NUL after its *size_p
 * bytes. A wrapper of relocatable code has one text per fatbin. i: below gp_image_count(). limit:
 * maximum size. Returns 0, and the caller frees *ptx_p with free(); GP_IMAGE_E_NONE: the fatbin has
 * no PTX; or an error of gp_fatbin_extract().
 */
int gp_image_software_ptx(const struct gp_image *image, unsigned int i, size_t limit, char **ptx_p,
			  size_t *size_p) __attribute__((warn_unused_result));

#endif /* GP_FATBIN_H */
