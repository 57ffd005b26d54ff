/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of fake_session.h: its driver, which fills in gpd_driver.  Tests have no use
 * for this.  Any thread may call fake_driver_called(); the rest is for fake_session_create().
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "server/worker/device/driver.h"

/* Notes a call down in fake_driver_calls; the answer it is to get. */
CUresult fake_driver_called(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A driver that has been asked for nothing yet and that fails nothing. */
void fake_driver_create(void);
/* Its functions of arrays, textures and surfaces, those of images and kernels, and of graphs. */
void fake_driver_add_arrays(void);
void fake_driver_add_images(void);
void fake_driver_add_graphs(void);

#endif /* FAKE_DRIVER_H */
