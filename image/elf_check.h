/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an ELF for a GPU is one that the driver may get.  The driver follows its tables without a
 * look, and a wrong number in them ends the driver's process, which sessions share: so a number
 * that leads to what is not there is refused here.  What leads nowhere is not looked at, as
 * assemblers differ: ptxas, nvprune, and those of cuDNN and cuBLASLt.  Any thread; the bytes are
 * the caller's.
 */
#ifndef GP_ELF_CHECK_H
#define GP_ELF_CHECK_H

#include "image/elf_file.h"

#define GP_ELF_MACHINE_CUDA 190

/* A cubin or a relocatable one; behind it may be other bytes.  Returns: 0; -EBADMSG, and
 * gp_image_get_error() says what is wrong; -ENOMEM. */
int gp_elf_check(const uint8_t *bytes, size_t size) __attribute__((warn_unused_result));

/* What elf_check.c and elf_check_code.c share: an ELF whose table of sections is in order. */
struct gp_elf_check {
	struct gp_elf elf;
	Elf64_Shdr symbols;      /* of type 0: it has none */
	Elf64_Shdr symbol_names; /* ends with a NUL */
	uint64_t symbol_count;
};

/* Says what is wrong with a section.  Returns: -EBADMSG. */
int gp_elf_refuse(uint64_t section, const char *what, uint64_t value);

/* What is in the sections: symbols, relocations, attributes. */
int gp_elf_check_code(struct gp_elf_check *check) __attribute__((warn_unused_result));

/* Of a section whose number and place are known to be right. */
const char *gp_elf_get_section_name(const struct gp_elf *elf, const Elf64_Shdr *section);

#endif /* GP_ELF_CHECK_H */
