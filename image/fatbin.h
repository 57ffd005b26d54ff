/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code as CUDA programs hand it to the driver: a fatbin wrapper, a bare fatbin, an ELF cubin
 * or PTX text. struct gp_image is a checked view of one; it is made from a pointer of the calling
 * process (sizes unknown) or from the flat bytes that travel on the wire (nothing trusted), and it
 * borrows what it was made from. No locking: one thread at a time per object.
 * Returns: 0 done; -EBADMSG malformed bytes; -EFBIG over a limit; -ENOMEM; positive GP_IMAGE_E_*.
 */
#ifndef GP_FATBIN_H
#define GP_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No image, and no part of one, may be larger. */
#define GP_IMAGE_SIZE_MAX (UINT64_C(2) << 30)
/* NCCL's wrapper names 127 further fatbins. */
#define GP_IMAGE_BLOBS_MAX 65536u
/* Flat bytes must lie at a multiple of this, as the driver wants its fatbins aligned. */
#define GP_IMAGE_ALIGN 16u

enum {
	GP_IMAGE_E_END = 1,  /* no further entry */
	GP_IMAGE_E_NONE = 2, /* nothing in the image can run on the device */
};

/* The values are on the wire. */
enum gp_image_kind {
	GP_IMAGE_UNKNOWN = 0,
	GP_IMAGE_WRAPPER = 1,
	GP_IMAGE_FATBIN = 2,
	GP_IMAGE_ELF = 3,
	GP_IMAGE_PTX = 4,
};

struct gp_image_blob {
	const uint8_t *data;
	size_t size;
};

struct gp_image;

/* What the device can use. software: PTX only. */
struct gp_image_target {
	unsigned int major;
	unsigned int minor;
	bool software;
};

enum gp_fatbin_kind {
	GP_FATBIN_PTX = 1,
	GP_FATBIN_ELF = 2,
	GP_FATBIN_LTO_IR = 8,
};

enum gp_fatbin_flag {
	GP_FATBIN_DEBUG = 0x2,
	GP_FATBIN_LZ4 = 0x2000,
	GP_FATBIN_ZSTD = 0x8000,
	GP_FATBIN_ARCH_SPECIFIC = 0x100000,   /* sm_90a: that very device only */
	GP_FATBIN_FAMILY_SPECIFIC = 0x200000, /* sm_100f: that major version only */
};

/* One entry; the pointers lead into the fatbin. */
struct gp_fatbin_entry {
	const uint8_t *start; /* of the entry's header */
	size_t size;          /* of header and payload */
	unsigned int kind;    /* enum gp_fatbin_kind, or another number */
	unsigned int sm;      /* 90: compute capability 9.0 */
	uint64_t flags;
	const uint8_t *payload;
	size_t stored_size; /* of the payload; padding not counted when it is compressed */
	size_t raw_size;    /* after extraction */
	const char *name;   /* source file, name_size bytes without a NUL; NULL: not recorded */
	size_t name_size;
};

/*
 * Limits the unpacking of compressed code: few bytes can announce very many.  Its owner embeds it.
 * Threads: one at a time for each gate.
 */
struct gp_unpack_limiter {
	/* Before size bytes are unpacked.  Returns 0; -EDQUOT: the session may not have them;
	 * -ECANCELED.  After an error leave() is not called. */
	int (*enter)(struct gp_unpack_limiter *gate, uint64_t size);
	/* After the unpacked bytes were freed. */
	void (*leave)(struct gp_unpack_limiter *gate, uint64_t size);
	/* While true, unpacking fails with -ECANCELED; or NULL. */
	const _Atomic bool *stop;
};

struct gp_fatbin_walk {
	const uint8_t *next;
	const uint8_t *end;
};

/* Looks at the first bytes only. image is a pointer of this process to at least four bytes. */
enum gp_image_kind gp_image_kind(const void *image);

/* The bytes of a bare fatbin, an ELF, or PTX text with its NUL; of a wrapper: of all its fatbins.
 */
int gp_image_size(const void *image, size_t *size_p) __attribute__((warn_unused_result));

/* image: what the application gave to cuLibraryLoadData or cuModuleLoadData. */
int gp_image_create(const void *image, struct gp_image **image_p)
	__attribute__((warn_unused_result));

/* bytes: what gp_image_flatten() made, perhaps tampered with; they must outlive the object. */
int gp_image_open(const void *bytes, size_t size, struct gp_image **image_p)
	__attribute__((warn_unused_result));

/* What has just been refused here with -EBADMSG in this thread, as the end of a sentence; valid
 * until the next image is looked at. */
const char *gp_image_get_error(void);

void gp_image_destroy(struct gp_image *image);

enum gp_image_kind gp_image_type(const struct gp_image *image);

/* Fatbins of a wrapper, or the one thing there is. */
unsigned int gp_image_count(const struct gp_image *image);
struct gp_image_blob gp_image_blob(const struct gp_image *image, unsigned int i);

/*
 * One contiguous string of bytes, the same for the same image and target; the caller frees it.
 * With a target, fatbin entries that the device cannot use are left out, and GP_IMAGE_E_NONE says
 * that no entry is left (the driver would answer CUDA_ERROR_NO_BINARY_FOR_GPU).
 */
int gp_image_flatten(const struct gp_image *image, const struct gp_image_target *target,
		     void **bytes_p, size_t *size_p) __attribute__((warn_unused_result));

/* What to hand to the driver; for a wrapper it is rebuilt within the object. Valid while that is.
 */
const void *gp_image_driver_pointer(const struct gp_image *image);

/* Starts at the first entry of a fatbin of exactly size bytes. */
int gp_fatbin_walk(struct gp_fatbin_walk *walk, const void *fatbin, size_t size)
	__attribute__((warn_unused_result));

/* GP_IMAGE_E_END after the last entry.  -EBADMSG: its header is none that the driver may follow. */
int gp_fatbin_next(struct gp_fatbin_walk *walk, struct gp_fatbin_entry *entry_p)
	__attribute__((warn_unused_result));

/* Whether all entries are as the driver needs them: 0, or -EBADMSG. */
int gp_fatbin_check(const void *fatbin, size_t size) __attribute__((warn_unused_result));

/* The same of each fatbin in bytes that hold others, too, as an object or a library.  begins: they
 * must begin with one. */
int gp_fatbin_check_embedded(const void *bytes, size_t size, bool begins)
	__attribute__((warn_unused_result));

/* The plain payload with a NUL behind it (not counted); the caller frees it. */
int gp_fatbin_extract(const struct gp_fatbin_entry *entry, size_t limit, void **bytes_p,
		      size_t *size_p) __attribute__((warn_unused_result));

/* The same of a compressed entry through a gate (NULL: there is none).  gp_fatbin_release() frees
 * the bytes.  Returns also: -ENOEXEC: an entry of machine code does not begin as an ELF for a GPU,
 * which is found before the rest is unpacked; -EDQUOT; -ECANCELED. */
int gp_fatbin_extract_limited(const struct gp_fatbin_entry *entry, size_t limit,
			      struct gp_unpack_limiter *gate, void **bytes_p, size_t *size_p)
	__attribute__((warn_unused_result));
void gp_fatbin_release(struct gp_unpack_limiter *gate, void *bytes, size_t size);

/* Whether the device can use the entry, looked at alone. */
bool gp_fatbin_usable(const struct gp_fatbin_entry *entry, const struct gp_image_target *target);

/* The closest machine code that the device can use: entries may have been made for several.  false:
 * there is none. */
bool gp_fatbin_best_code(struct gp_image_blob fatbin, const struct gp_image_target *target,
			 struct gp_fatbin_entry *entry_p);

/* The PTX to prefer: for a GPU the highest version that fits, for the software device the lowest;
 * plain before arch-specific. GP_IMAGE_E_NONE: there is none. */
int gp_fatbin_best_ptx(struct gp_image_blob fatbin, const struct gp_image_target *target,
		       struct gp_fatbin_entry *entry_p) __attribute__((warn_unused_result));

/*
 * Copies a fatbin to out (room for the whole one) without what the device cannot use. When that
 * would be everything, usable is false and the smallest entry stays, so that the driver finds a
 * fatbin without a fitting binary and not a malformed one.
 */
int gp_fatbin_filter(struct gp_image_blob fatbin, const struct gp_image_target *target,
		     uint8_t *out, size_t *size_p, bool *usable_p)
	__attribute__((warn_unused_result));

/*
 * The PTX text that the software device runs, of blob i, with a NUL behind its size bytes; the
 * caller frees it. A wrapper of relocatable code has one per object. GP_IMAGE_E_NONE: ELF only.
 */
int gp_image_software_ptx(const struct gp_image *image, unsigned int i, size_t limit, char **ptx_p,
			  size_t *size_p) __attribute__((warn_unused_result));

#endif /* GP_FATBIN_H */
