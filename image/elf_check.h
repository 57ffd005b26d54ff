/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of a GPU ELF before it is passed to the driver. The driver follows the ELF's tables
 * without checks, and a wrong number crashes its process, which sessions share. An ELF is therefore
 * rejected if an offset, size or index that the driver follows leads outside of the file or of a
 * table, or if sections overlap. Numbers that the driver does not follow are not checked, because
 * assemblers differ: ptxas, nvprune, and those of cuDNN and cuBLASLt.
 *
 * Ownership: the bytes are the caller's and are not used after the call.
 * Threads: any.
 * Errors: the checks return 0; -EBADMSG, with the reason in gp_image_get_error() (fatbin.h); or
 * -ENOMEM.
 */
#ifndef GP_ELF_CHECK_H
#define GP_ELF_CHECK_H

#include "image/elf_file.h"

/* e_machine of GPU code. */
#define GP_ELF_MACHINE_CUDA 190

/* Checks a cubin or a relocatable ELF of at most `size` bytes; other bytes may follow it. */
int gp_elf_check(const uint8_t *bytes, size_t size) __attribute__((warn_unused_result));

/* State shared by elf_check.c and elf_check_code.c: an ELF with a valid section table. */
struct gp_elf_check {
	struct gp_elf elf;
	Elf64_Shdr symbols;      /* type 0: no symbol table */
	Elf64_Shdr symbol_names; /* ends with a NUL */
	uint64_t symbol_count;
};

/* Sets the text of gp_image_get_error() to "an ELF for a GPU, section SECTION: WHAT VALUE", for the
 * two .c files. section: index of the section. Returns -EBADMSG. */
int gp_elf_refuse(uint64_t section, const char *what, uint64_t value);

/* Part of gp_elf_check(): checks the content of the sections (symbols, relocations, attributes).
 * check->elf is open, and the bounds of its sections have been validated; the other members are
 * zero, and the function sets them. */
int gp_elf_check_code(struct gp_elf_check *check) __attribute__((warn_unused_result));

/* Returns the name of a section whose bounds have been validated; borrowed from the ELF's bytes. */
const char *gp_elf_get_section_name(const struct gp_elf *elf, const Elf64_Shdr *section);

#endif /* GP_ELF_CHECK_H */
