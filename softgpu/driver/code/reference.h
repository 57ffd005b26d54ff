/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of loaded code. Each stores its memory and sampling parameters,
 * and is implemented by a texture or surface object whose number is written to the variable that
 * kernels read. Functions that set a reference wait for all kernels.
 *
 * Ownership: references belong to their code.
 * Threads: any.
 */
#ifndef GS_REFERENCE_H
#define GS_REFERENCE_H

struct gs_binary;

/* Invalidates the handles of the code's references. */
void gs_references_retire(struct gs_binary *code);
/* Frees the references; called when no kernel of the code runs any more. */
void gs_references_free(struct gs_binary *code);

#endif /* GS_REFERENCE_H */
