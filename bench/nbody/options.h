/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the program nbody. Options have the names of NVIDIA's sample nbody, after one
 * dash or two. */
#pragma once

struct options {
	bool benchmark = false; /* accepted for compatibility; no effect */
	bool compare = false;   /* compare the result with the CPU instead of measuring */
	bool cpu = false;       /* simulate on the CPU only */
	bool fp64 = false;      /* use double precision */
	int bodies = 0;      /* number of bodies; 0: 1024 per multiprocessor of the device. 4096 by
				default with compare or cpu */
	int iterations = 10; /* number of steps to run; 1 by default with compare */
	/* CUDA device number */
	int device = 0;
	int block_size = 256; /* threads per block, a multiple of 32, at most 1024 */
};

/* Returns the parsed options. On -help, prints the help text and exits with status 0. On an invalid
 * argument, prints a message and exits with status 2. argv is borrowed during the call. */
options parse_options(int argc, char **argv);
