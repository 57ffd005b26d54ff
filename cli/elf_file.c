/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/elf_file.h"

#include <elf.h>
#include <endian.h>
#include <string.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

struct file {
	const unsigned char *bytes;
	size_t size;
	Elf64_Ehdr header;
};

static bool
bytes_read(const struct file *file, uint64_t offset, void *to, size_t size)
{
	if (offset > file->size || size > file->size - offset)
		return false;
	memcpy(to, file->bytes + offset, size);
	return true;
}

static bool
segment_read(const struct file *file, unsigned int index, Elf64_Phdr *segment_read)
{
	if (file->header.e_phentsize < sizeof(*segment_read) || index >= file->header.e_phnum ||
	    file->header.e_phoff > file->size)
		return false;
	return bytes_read(file, file->header.e_phoff + (uint64_t)index * file->header.e_phentsize,
			  segment_read, sizeof(*segment_read));
}

/* Translates a virtual address to an offset in the file. */
static bool
address_to_offset(const struct file *file, uint64_t address, uint64_t *offset_p)
{
	Elf64_Phdr load;

	for (unsigned int i = 0; segment_read(file, i, &load); i++) {
		if (load.p_type != PT_LOAD || address < load.p_vaddr ||
		    address - load.p_vaddr >= load.p_filesz)
			continue;
		*offset_p = load.p_offset + (address - load.p_vaddr);
		return *offset_p < file->size;
	}
	return false;
}

/* Returns a string that is terminated within the file, or NULL. */
static const char *
get_text(const struct file *file, uint64_t strings, uint64_t offset)
{
	uint64_t at = strings + offset;

	if (at < strings || at >= file->size || !memchr(file->bytes + at, 0, file->size - at))
		return NULL;
	return (const char *)file->bytes + at;
}

static void
read_entries(const struct file *file, const Elf64_Phdr *dynamic, uint64_t strings,
	     struct cli_elf *elf)
{
	Elf64_Dyn entry;

	for (uint64_t at = 0; at + sizeof(entry) <= dynamic->p_filesz; at += sizeof(entry)) {
		const char *text;

		if (!bytes_read(file, dynamic->p_offset + at, &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return;
		if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH &&
		    entry.d_tag != DT_RUNPATH)
			continue;
		text = get_text(file, strings, entry.d_un.d_val);
		if (!text)
			continue;
		if (entry.d_tag == DT_RPATH)
			elf->rpath = text;
		else if (entry.d_tag == DT_RUNPATH)
			elf->runpath = text;
		else if (strstr(text, "libcuda.so"))
			elf->libcuda = text;
	}
}

static void
read_dynamic(const struct file *file, const Elf64_Phdr *dynamic, struct cli_elf *elf)
{
	uint64_t strings;
	Elf64_Dyn entry;

	for (uint64_t at = 0; at + sizeof(entry) <= dynamic->p_filesz; at += sizeof(entry)) {
		if (!bytes_read(file, dynamic->p_offset + at, &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return;
		if (entry.d_tag == DT_STRTAB &&
		    address_to_offset(file, entry.d_un.d_ptr, &strings)) {
			read_entries(file, dynamic, strings, elf);
			return;
		}
	}
}

void
cli_elf_read(const void *bytes, size_t size, struct cli_elf *elf)
{
	static const unsigned char order =
		__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
	struct file file = { .bytes = bytes, .size = size };
	Elf64_Phdr part;

	*elf = (struct cli_elf){ 0 };
	if (!bytes_read(&file, 0, &file.header, sizeof(file.header)) ||
	    memcmp(file.header.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	elf->elf = true;
	if (file.header.e_ident[EI_CLASS] != ELFCLASS64 || file.header.e_ident[EI_DATA] != order ||
	    file.header.e_machine != MACHINE) {
		elf->other_machine = true;
		return;
	}
	for (unsigned int i = 0; segment_read(&file, i, &part); i++) {
		elf->dynamic = elf->dynamic || part.p_type == PT_INTERP;
		if (part.p_type == PT_DYNAMIC)
			read_dynamic(&file, &part, elf);
	}
}
