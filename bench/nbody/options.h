/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the program nbody. Options are spelled as in NVIDIA's sample of this name, with
 * one dash or two. */
#pragma once

struct options {
	bool benchmark = false;
	bool compare = false; /* check the device's result against the CPU's */
	bool cpu = false;     /* simulate on the CPU only */
	bool fp64 = false;    /* use double precision */
	int bodies = 0;       /* 0: enough to occupy the device */
	int iterations = 10;  /* steps to measure */
	/* CUDA device number */
	int device = 0;
	int block_size = 256; /* threads per block, a multiple of 32 */
};

/* Returns the parsed options. Exits with status 0 after the help text, and with status 2 and a
 * message for invalid arguments. */
options parse_options(int argc, char **argv);
