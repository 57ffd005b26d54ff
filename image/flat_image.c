/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat image bytes, little-endian: the header below, `count` u64 sizes, then the blobs. Each blob
 * begins at a multiple of GP_IMAGE_ALIGN; gaps are filled with zeros.
 */
#include "image/elf_check.h"
#include "image/fatbin.h"
#include "image/fatbin_entry.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u
#define ELF_MAGIC 0x464c457fu
#define FLAT_MAGIC 0x4d495047u
#define FLAT_VERSION 1
#define UNKNOWN_FORMAT "unknown format, or truncated"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "wire structs are used in place");

struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t body_size;
};

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *const *further; /* version 2: NULL-terminated list */
};

struct flat_header {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t count;
	uint32_t zero;
	uint64_t total;
	uint64_t zero2;
};

static_assert(sizeof(struct flat_header) == 32, "on the wire");

struct gp_image {
	enum gp_image_kind kind;
	unsigned int count;
	struct gp_image_blob *blobs;
	struct wrapper wrapper;
	const void **further;
};

static size_t
align_up(size_t n)
{
	return (n + GP_IMAGE_ALIGN - 1) & ~(size_t)(GP_IMAGE_ALIGN - 1);
}

/* Stops at the first difference, because a text may be shorter than a magic number. */
static bool
has_magic(const uint8_t *p, uint32_t magic)
{
	for (unsigned int i = 0; i < sizeof(magic); i++) {
		if (p[i] != (uint8_t)(magic >> (8 * i)))
			return false;
	}
	return true;
}

enum gp_image_kind
gp_image_kind(const void *image)
{
	const uint8_t *p = image;

	if (has_magic(p, WRAPPER_MAGIC))
		return GP_IMAGE_WRAPPER;
	if (has_magic(p, FATBIN_MAGIC))
		return GP_IMAGE_FATBIN;
	if (has_magic(p, ELF_MAGIC))
		return GP_IMAGE_ELF;
	if (*p == '\t' || *p == '\n' || *p == '\r' || (*p >= ' ' && *p < 0x7f))
		return GP_IMAGE_PTX;
	return GP_IMAGE_UNKNOWN;
}

static int
extent_grow(uint64_t *size, uint64_t offset, uint64_t length, size_t available)
{
	if (offset > available || length > available - offset)
		return -EBADMSG;
	if (offset + length > *size)
		*size = offset + length;
	return 0;
}

static int
elf_add_sections(const uint8_t *p, const Elf64_Ehdr *header, size_t available, uint64_t *size)
{
	for (unsigned int i = 0; i < header->e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, p + header->e_shoff + (uint64_t)i * header->e_shentsize,
		       sizeof(section));
		if (!gp_elf_has_bytes(&section) || section.sh_size == 0)
			continue;
		if (extent_grow(size, section.sh_offset, section.sh_size, available))
			return -EBADMSG;
	}
	return 0;
}

static int
elf_add_segments(const uint8_t *p, const Elf64_Ehdr *header, size_t available, uint64_t *size)
{
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, p + header->e_phoff + (uint64_t)i * header->e_phentsize,
		       sizeof(segment));
		if (extent_grow(size, segment.p_offset, segment.p_filesz, available))
			return -EBADMSG;
	}
	return 0;
}

/* Includes the program headers, which usually come last in a cubin. */
static int
elf_get_size(const uint8_t *p, size_t available, size_t *size_p)
{
	Elf64_Ehdr header;
	uint64_t size;

	if (available < sizeof(header))
		return -EBADMSG;
	memcpy(&header, p, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_machine != GP_ELF_MACHINE_CUDA || header.e_ehsize < sizeof(header))
		return -EBADMSG;
	if ((header.e_shnum && header.e_shentsize < sizeof(Elf64_Shdr)) ||
	    (header.e_phnum && header.e_phentsize < sizeof(Elf64_Phdr)))
		return -EBADMSG;
	size = header.e_ehsize;
	if (size > available ||
	    extent_grow(&size, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize,
			available) ||
	    extent_grow(&size, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize,
			available) ||
	    elf_add_sections(p, &header, available, &size) ||
	    elf_add_segments(p, &header, available, &size))
		return -EBADMSG;
	*size_p = size;
	return 0;
}

static int
fatbin_get_size(const uint8_t *p, size_t available, size_t *size_p)
{
	struct fatbin_header header;

	if (available < sizeof(header))
		return -EBADMSG;
	memcpy(&header, p, sizeof(header));
	if (header.magic != FATBIN_MAGIC || header.version != 1 ||
	    header.header_size != sizeof(header) || header.body_size > available - sizeof(header))
		return -EBADMSG;
	*size_p = sizeof(header) + header.body_size;
	return 0;
}

static int
blob_get_size(enum gp_image_kind kind, const void *p, size_t available, size_t *size_p)
{
	size_t length;

	switch (kind) {
	case GP_IMAGE_FATBIN:
		return fatbin_get_size(p, available, size_p);
	case GP_IMAGE_ELF:
		return elf_get_size(p, available, size_p);
	case GP_IMAGE_PTX:
		length = strnlen(p, available);
		if (length == available)
			return -EBADMSG;
		*size_p = length + 1;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Users of an image rely on valid fatbin entries. */
static int
blob_check(enum gp_image_kind kind, struct gp_image_blob blob)
{
	return kind == GP_IMAGE_FATBIN ? gp_fatbin_check(blob.data, blob.size) : 0;
}

static enum gp_image_kind
blob_get_kind(const struct gp_image *image)
{
	return image->kind == GP_IMAGE_WRAPPER ? GP_IMAGE_FATBIN : image->kind;
}

/* The wrapper for the driver has version 1 unless it needs a list of further fatbins. */
static int
wrapper_build(struct gp_image *image)
{
	if (image->kind != GP_IMAGE_WRAPPER)
		return 0;
	image->wrapper.magic = WRAPPER_MAGIC;
	image->wrapper.version = image->count > 1 ? 2 : 1;
	image->wrapper.data = image->blobs[0].data;
	if (image->count == 1)
		return 0;
	image->further = calloc(image->count, sizeof(*image->further));
	if (!image->further)
		return -ENOMEM;
	for (unsigned int i = 1; i < image->count; i++)
		image->further[i - 1] = image->blobs[i].data;
	image->wrapper.further = image->further;
	return 0;
}

static struct gp_image *
image_alloc(enum gp_image_kind kind, unsigned int count)
{
	struct gp_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->kind = kind;
	image->count = count;
	image->blobs = calloc(count, sizeof(*image->blobs));
	if (!image->blobs) {
		free(image);
		return NULL;
	}
	return image;
}

void
gp_image_destroy(struct gp_image *image)
{
	if (!image)
		return;
	free(image->further);
	free(image->blobs);
	free(image);
}

static int
wrapper_count_fatbins(const struct wrapper *wrapper, unsigned int *count_p)
{
	unsigned int count = 1;

	if ((wrapper->version != 1 && wrapper->version != 2) || !wrapper->data)
		return -EBADMSG;
	if (wrapper->version == 2 && wrapper->further) {
		while (wrapper->further[count - 1]) {
			if (++count > GP_IMAGE_BLOBS_MAX)
				return -EBADMSG;
		}
	}
	*count_p = count;
	return 0;
}

/* Determines the sizes of the blobs, whose data pointers are set, and validates them. */
static int
blobs_measure(struct gp_image *image)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < image->count; i++) {
		struct gp_image_blob *blob = &image->blobs[i];
		int r = blob_get_size(blob_get_kind(image), blob->data, GP_IMAGE_SIZE_MAX,
				      &blob->size);

		if (!r)
			r = blob_check(blob_get_kind(image), *blob);
		if (r)
			return r;
		total += align_up(blob->size);
		if (total > GP_IMAGE_SIZE_MAX)
			return -EFBIG;
	}
	return wrapper_build(image);
}

int
gp_image_create(const void *pointer, struct gp_image **image_p)
{
	enum gp_image_kind kind = gp_image_kind(pointer);
	struct wrapper wrapper;
	struct gp_image *image;
	unsigned int count = 1;
	int r;

	if (kind == GP_IMAGE_UNKNOWN)
		return gp_image_set_error("not a fatbin, an ELF for a GPU, or PTX text");
	(void)gp_image_set_error(UNKNOWN_FORMAT);
	if (kind == GP_IMAGE_WRAPPER) {
		memcpy(&wrapper, pointer, sizeof(wrapper));
		r = wrapper_count_fatbins(&wrapper, &count);
		if (r)
			return r;
	}
	image = image_alloc(kind, count);
	if (!image)
		return -ENOMEM;
	image->blobs[0].data = kind == GP_IMAGE_WRAPPER ? wrapper.data : pointer;
	for (unsigned int i = 1; i < count; i++)
		image->blobs[i].data = wrapper.further[i - 1];
	r = blobs_measure(image);
	if (r) {
		gp_image_destroy(image);
		return r;
	}
	*image_p = image;
	return 0;
}

int
gp_image_size(const void *pointer, size_t *size_p)
{
	enum gp_image_kind kind = gp_image_kind(pointer);
	struct gp_image *image;
	size_t size = 0;
	int r;

	if (kind != GP_IMAGE_WRAPPER)
		return blob_get_size(kind, pointer, GP_IMAGE_SIZE_MAX, size_p);
	r = gp_image_create(pointer, &image);
	if (r)
		return r;
	for (unsigned int i = 0; i < image->count; i++)
		size += image->blobs[i].size;
	gp_image_destroy(image);
	*size_p = size;
	return 0;
}

static int
flat_check(const struct flat_header *header, const void *bytes, size_t size)
{
	if ((uintptr_t)bytes % GP_IMAGE_ALIGN || size < sizeof(*header) || size > GP_IMAGE_SIZE_MAX)
		return -EBADMSG;
	if (header->magic != FLAT_MAGIC || header->version != FLAT_VERSION || header->zero ||
	    header->zero2 || header->total != size)
		return -EBADMSG;
	if (header->kind < GP_IMAGE_WRAPPER || header->kind > GP_IMAGE_PTX || !header->count ||
	    header->count > GP_IMAGE_BLOBS_MAX ||
	    (header->kind != GP_IMAGE_WRAPPER && header->count != 1))
		return -EBADMSG;
	return header->count > (size - sizeof(*header)) / sizeof(uint64_t) ? -EBADMSG : 0;
}

/* A blob's length must equal the length in its own header. */
static int
blobs_parse(struct gp_image *image, const uint8_t *bytes, size_t size)
{
	size_t at = align_up(sizeof(struct flat_header) + image->count * sizeof(uint64_t));

	for (unsigned int i = 0; i < image->count; i++) {
		struct gp_image_blob *blob = &image->blobs[i];
		uint64_t length;
		size_t exact;
		int r;

		memcpy(&length, bytes + sizeof(struct flat_header) + i * sizeof(length),
		       sizeof(length));
		if (at > size || length > size - at || length < 4)
			return -EBADMSG;
		blob->data = bytes + at;
		blob->size = length;
		if (gp_image_kind(blob->data) != blob_get_kind(image) ||
		    blob_get_size(blob_get_kind(image), blob->data, length, &exact) ||
		    exact != length)
			return -EBADMSG;
		r = blob_check(blob_get_kind(image), *blob);
		if (r)
			return r;
		at = align_up(at + length);
	}
	return at == size ? 0 : -EBADMSG;
}

int
gp_image_open(const void *bytes, size_t size, struct gp_image **image_p)
{
	struct gp_image *image;
	const struct flat_header *header = bytes;
	int r;

	(void)gp_image_set_error(UNKNOWN_FORMAT);
	r = flat_check(header, bytes, size);
	if (r)
		return r;
	image = image_alloc(header->kind, header->count);
	if (!image)
		return -ENOMEM;
	r = blobs_parse(image, bytes, size);
	if (!r)
		r = wrapper_build(image);
	if (r) {
		gp_image_destroy(image);
		return r;
	}
	*image_p = image;
	return 0;
}

enum gp_image_kind
gp_image_type(const struct gp_image *image)
{
	return image->kind;
}

unsigned int
gp_image_count(const struct gp_image *image)
{
	return image->count;
}

struct gp_image_blob
gp_image_blob(const struct gp_image *image, unsigned int i)
{
	assert(i < image->count);
	return image->blobs[i];
}

const void *
gp_image_driver_pointer(const struct gp_image *image)
{
	return image->kind == GP_IMAGE_WRAPPER ? (const void *)&image->wrapper
					       : image->blobs[0].data;
}

/* Writes the blob to `out`, filtered if it is a fatbin. */
static int
blob_write(const struct gp_image *image, unsigned int i, const struct gp_image_target *target,
	   uint8_t *out, uint64_t *size_p, bool *usable)
{
	const struct gp_image_blob *blob = &image->blobs[i];
	size_t size = blob->size;
	bool here = true;

	if (target && blob_get_kind(image) == GP_IMAGE_FATBIN) {
		int r = gp_fatbin_filter(*blob, target, out, &size, &here);

		if (r)
			return r;
	} else {
		here = !(target && target->software && image->kind == GP_IMAGE_ELF);
		memcpy(out, blob->data, size);
	}
	*usable = *usable || here;
	*size_p = size;
	return 0;
}

static int
image_write(const struct gp_image *image, const struct gp_image_target *target, uint8_t *bytes,
	    size_t *size_p)
{
	struct flat_header header = { .magic = FLAT_MAGIC,
				      .version = FLAT_VERSION,
				      .kind = (uint16_t)image->kind,
				      .count = image->count };
	size_t at = align_up(sizeof(header) + image->count * sizeof(uint64_t));
	bool usable = false;

	memset(bytes, 0, at);
	for (unsigned int i = 0; i < image->count; i++) {
		uint64_t length;
		int r = blob_write(image, i, target, bytes + at, &length, &usable);

		if (r)
			return r;
		memcpy(bytes + sizeof(header) + i * sizeof(length), &length, sizeof(length));
		memset(bytes + at + length, 0, align_up(length) - length);
		at += align_up(length);
	}
	header.total = at;
	memcpy(bytes, &header, sizeof(header));
	*size_p = at;
	return usable ? 0 : GP_IMAGE_E_NONE;
}

int
gp_image_flatten(const struct gp_image *image, const struct gp_image_target *target, void **bytes_p,
		 size_t *size_p)
{
	size_t room = align_up(sizeof(struct flat_header) + image->count * sizeof(uint64_t));
	size_t size;
	void *bytes, *shrunk;
	int r;

	for (unsigned int i = 0; i < image->count; i++)
		room += align_up(image->blobs[i].size);
	bytes = malloc(room);
	if (!bytes)
		return -ENOMEM;
	r = image_write(image, target, bytes, &size);
	if (r) {
		free(bytes);
		return r;
	}
	shrunk = realloc(bytes, size);
	*bytes_p = shrunk ? shrunk : bytes;
	*size_p = size;
	return 0;
}

static int
text_copy(struct gp_image_blob blob, size_t limit, char **ptx_p, size_t *size_p)
{
	char *text;

	if (blob.size - 1 > limit)
		return -EFBIG;
	text = malloc(blob.size);
	if (!text)
		return -ENOMEM;
	memcpy(text, blob.data, blob.size);
	*ptx_p = text;
	*size_p = blob.size - 1;
	return 0;
}

int
gp_image_software_ptx(const struct gp_image *image, unsigned int i, size_t limit, char **ptx_p,
		      size_t *size_p)
{
	const struct gp_image_target target = { .software = true };
	struct gp_fatbin_entry entry;
	void *bytes;
	int r;

	if (image->kind == GP_IMAGE_PTX)
		return text_copy(gp_image_blob(image, i), limit, ptx_p, size_p);
	if (image->kind == GP_IMAGE_ELF)
		return GP_IMAGE_E_NONE;
	r = gp_fatbin_best_ptx(gp_image_blob(image, i), &target, &entry);
	if (!r)
		r = gp_fatbin_extract(&entry, limit, &bytes, size_p);
	if (!r)
		*ptx_p = bytes;
	return r;
}
