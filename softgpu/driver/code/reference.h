/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of loaded code.  Each keeps what it is of and how it is read, and
 * is a texture or surface object made of that, whose number lies where kernels read it.  What sets
 * one waits for all kernels.  They belong to their code.  Any thread.
 */
#ifndef GS_REFERENCE_H
#define GS_REFERENCE_H

struct gs_binary;

/* Their handles die. */
void gs_references_retire(struct gs_binary *code);
/* No kernel of the code runs any more. */
void gs_references_free(struct gs_binary *code);

#endif /* GS_REFERENCE_H */
