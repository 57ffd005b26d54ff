/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface between the files of the fake CUDA driver, which fills in gpd_driver (the
 * worker's table of driver functions) for fake_session.h. Tests include fake_session.h instead.
 *
 * Threads: any thread may call fake_driver_called(). The other functions are called by
 * fake_session_create() only.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "server/worker/device/driver.h"

/* Appends a line to the log fake_driver_calls. Returns the result for this call: CUDA_SUCCESS, or
 * the error that fake_driver_fail() has set. */
CUresult fake_driver_called(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Installs the fake driver with an empty log, no errors set. */
void fake_driver_create(void);
/* Install the functions for arrays, textures and surfaces (arrays), for images and kernels
 * (images), and for graphs (graphs). Called by fake_driver_create(). */
void fake_driver_add_arrays(void);
void fake_driver_add_images(void);
void fake_driver_add_graphs(void);

#endif /* FAKE_DRIVER_H */
