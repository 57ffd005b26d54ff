/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPC_CONTEXT_PARTS_H
#define GPC_CONTEXT_PARTS_H

/* Tells contexts what goes with them; as the library is loaded, and in tests. */
void gpc_context_parts_set(void);

#endif /* GPC_CONTEXT_PARTS_H */
