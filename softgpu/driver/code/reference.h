/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of loaded code (CUtexref and CUsurfref).
 *
 * A reference stores its memory and sampling parameters. It is implemented by a texture or surface
 * object, whose ID is written to the variable that kernels read. Functions that set a reference
 * wait for all kernels.
 * Ownership: references belong to their code (struct gs_binary), which keeps them in a list.
 * Threads: any; a lock protects the lists of all code.
 */
#ifndef GS_REFERENCE_H
#define GS_REFERENCE_H

struct gs_binary;

/* Retires the handles of the code's references when the code is unloaded. */
void gs_references_retire(struct gs_binary *code);
/* Frees the references; called when no kernel of the code runs any more and their handles are
 * retired. */
void gs_references_free(struct gs_binary *code);

#endif /* GS_REFERENCE_H */
