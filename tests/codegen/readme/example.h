/* SPDX-License-Identifier: Apache-2.0 */
/* The client's object in an example of codegen/README.md; the test has one, and counts. */
#ifndef TEST_README_EXAMPLE_H
#define TEST_README_EXAMPLE_H

#include <cuda.h>

struct example {
	struct {
		int number;
	} kind;
};

CUresult example_begin(CUuserObject object, struct example **example_p);
CUresult example_end(CUresult result);

#endif /* TEST_README_EXAMPLE_H */
