/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the program nbody. Options are spelled as in NVIDIA's sample of this name, with
 * one dash or two. */
#pragma once

struct options {
	bool benchmark = false; /* accepted for compatibility; no effect */
	bool compare = false;   /* compare the result with the CPU instead of measuring */
	bool cpu = false;       /* simulate on the CPU only */
	bool fp64 = false;      /* use double precision */
	int bodies = 0; /* number of bodies; 0: a default that depends on the device and the mode */
	int iterations = 10; /* number of steps to run */
	/* CUDA device number */
	int device = 0;
	int block_size = 256; /* threads per block, a multiple of 32 */
};

/* Returns the parsed options. On -help, prints the help text and exits with status 0. On an invalid
 * argument, prints a message and exits with status 2. argv is borrowed during the call. */
options parse_options(int argc, char **argv);
