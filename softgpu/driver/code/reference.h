/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of loaded code (CUtexref and CUsurfref).
 *
 * A reference stores its memory and sampling parameters. It is implemented by a texture or surface
 * object, whose handle (CUtexObject, CUsurfObject) is written to the variable that kernels read.
 * Ownership: references belong to their code (struct gs_binary), which stores them in a list.
 * Threads: any; one lock protects the lists of all code.
 */
#ifndef GS_REFERENCE_H
#define GS_REFERENCE_H

struct gs_binary;

/* Invalidates the handles of the code's references when the code is unloaded: later look-ups of
 * these handles fail. The references remain until gs_references_free(). */
void gs_references_retire(struct gs_binary *code);
/* Frees the code's references and their texture and surface objects. Called when no kernel of the
 * code runs any more and after gs_references_retire(). */
void gs_references_free(struct gs_binary *code);

#endif /* GS_REFERENCE_H */
