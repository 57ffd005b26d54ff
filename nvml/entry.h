/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported symbols, from codegen/nvml/symbols.txt.  Each jumps through its place in
 * gpn_entry[]: to its function, to gpn_not_supported(), or, when no daemon is named, to the
 * machine's own library.  Filled as the library is loaded and not changed afterwards.
 */
#ifndef GPN_ENTRY_H
#define GPN_ENTRY_H

#include <stddef.h>

struct gpn_entry_info {
	const char *name;
	void *ours; /* NULL: not supported */
};

/* Generated. */
extern const struct gpn_entry_info gpn_entries[];
extern const size_t gpn_entry_count;
extern void *gpn_entry[];

/* By asking nvmlInternalGetExportTable for this table one copy of this library knows another. */
extern const unsigned char gpn_table_id[16];

/* Whatever the arguments of what is not supported: NVML's code for that, or that nvmlInit is
 * missing. */
int gpn_not_supported(void);

#endif /* GPN_ENTRY_H */
