/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of handles.  Those without COST are the client's alone: no object of the daemon's is behind
 * them.  A new kind of the driver's own objects goes into its chapter, with OBJECT.
 */

GP_KIND(context, TYPES(CUcontext, gp_context), COST(1024), LOOKUP)
GP_KIND(stream, TYPES(CUstream), COST(4096), ORDERED, LOOKUP)
GP_KIND(event, TYPES(CUevent), COST(128), ORDERED, LOOKUP)
/* CUmodule and CUlibrary. */
GP_KIND(image, TYPES(gp_image), COST(512), ORDERED)
/* Of the client's (cuLaunchHostFunc). */
GP_KIND(host_function, TYPES(gp_function), COST(256))
/* Physical memory: CUmemGenericAllocationHandle. */
GP_KIND(memory, TYPES(gp_memory), COST(512))
/* CUarray and CUmipmappedArray. */
GP_KIND(array, TYPES(gp_array), COST(2048))
/* Texture and surface objects; the application has the driver's number. */
GP_KIND(texture, TYPES(gp_texture), COST(1024))

GP_KIND(module, TYPES(CUmodule))
GP_KIND(library, TYPES(CUlibrary))
GP_KIND(kernel, TYPES(CUkernel))
GP_KIND(function, TYPES(CUfunction))
GP_KIND(pool, TYPES(CUmemoryPool))
/* A level of a mipmapped array. */
GP_KIND(level, TYPES(CUarray))
