/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of nbody, spelled as in NVIDIA's sample of that name, with one dash or two. */
#pragma once

struct options {
	bool benchmark = false;
	bool compare = false;
	bool cpu = false;
	bool fp64 = false;
	int bodies = 0; /* 0: enough to occupy the device */
	int iterations = 10;
	int device = 0;
	int block_size = 256;
};

/* Exits with status 0 after the help text, with 2 and a message for invalid arguments. */
options parse_options(int argc, char **argv);
