/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of a GPU ELF before it is passed to the driver. The driver follows the ELF's tables
 * without checks, and a wrong number crashes its process, which sessions share; so every number
 * that refers to a place outside of the file is rejected. Numbers that refer to nothing are
 * ignored, because assemblers differ: ptxas, nvprune, and those of cuDNN and cuBLASLt.
 *
 * Ownership: the bytes are the caller's and are not used after the call.
 * Threads: any.
 * Errors: functions that return int return 0; -EBADMSG, with the reason in gp_image_get_error(); or
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

/* Sets the error text for a section (its index), with `what` and a value. Returns -EBADMSG. */
int gp_elf_refuse(uint64_t section, const char *what, uint64_t value);

/* Checks the content of the sections: symbols, relocations, attributes. Fills the symbol members of
 * *check. */
int gp_elf_check_code(struct gp_elf_check *check) __attribute__((warn_unused_result));

/* Returns the name of a section whose bounds have been validated; borrowed from the ELF's bytes. */
const char *gp_elf_get_section_name(const struct gp_elf *elf, const Elf64_Shdr *section);

#endif /* GP_ELF_CHECK_H */
