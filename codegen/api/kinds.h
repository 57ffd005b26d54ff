/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of handles that several chapters use; a kind that one chapter uses is in that chapter.
 * Kinds without COST exist in the client only: the daemon has no object for them.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

GP_KIND(context, TYPES(CUcontext, gp_context), COST(1024), LOOKUP)
GP_KIND(stream, TYPES(CUstream), COST(4096), ORDERED, LOOKUP)
GP_KIND(event, TYPES(CUevent), COST(256), ORDERED, LOOKUP)
/* CUmodule and CUlibrary. */
GP_KIND(image, TYPES(gp_image), COST(512), ORDERED)
/* A host function of the client (cuLaunchHostFunc). */
GP_KIND(host_function, TYPES(gp_host_function), COST(256))
/* Physical memory: CUmemGenericAllocationHandle. */
GP_KIND(memory, TYPES(gp_memory), COST(512))
/* CUarray and CUmipmappedArray. */
GP_KIND(array, TYPES(gp_array), COST(2048))
/* Texture and surface objects. The application uses the driver's number. */
GP_KIND(texture, TYPES(gp_texture), COST(1024))
/* An exported object, which other processes may open (ipc.h). */
GP_KIND(share, TYPES(gp_share), COST(512))

GP_KIND(module, TYPES(CUmodule))
GP_KIND(library, TYPES(CUlibrary))
GP_KIND(kernel, TYPES(CUkernel))
GP_KIND(function, TYPES(CUfunction))
GP_KIND(pool, TYPES(CUmemoryPool))
/* The daemon knows only its context. */
GP_KIND(green, TYPES(CUgreenCtx))
/* A level of a mipmapped array. */
GP_KIND(level, TYPES(CUarray))

/* Client objects that exist without a handle. */
GP_CLIENT_OBJECT(program, ENTER(gpc_enter_local), HEADER("client/context/context.h"))
GP_CLIENT_OBJECT(session, ENTER(gpc_enter_initialized), HEADER("client/base/config.h", "client/context/context.h"))
/* The current context. For active, it is also created in the daemon if necessary. */
GP_CLIENT_OBJECT(active, STRUCT(gpc_context), ENTER(gpc_enter), HEADER("client/context/context.h"))
GP_CLIENT_OBJECT(current, STRUCT(gpc_context), ENTER(gpc_context_enter_current), HEADER("client/context/context.h"))
GP_CLIENT_OBJECT(context, TYPES(CUcontext), STRUCT(gpc_context), ENTER(gpc_context_enter), HEADER("client/context/context.h"))
GP_CLIENT_OBJECT(green, TYPES(CUgreenCtx), STRUCT(gpc_green_context), ENTER(gpc_green_context_enter), HEADER("client/api/green_context.h"))
GP_CLIENT_OBJECT(device, TYPES(CUdevice), STRUCT(gpc_device), ENTER(gpc_device_enter), HEADER("client/context/context.h"))
GP_CLIENT_OBJECT(stream, TYPES(CUstream), STRUCT(gpc_stream), ENTER(gpc_stream_enter), HEADER("client/stream/stream.h"))
GP_CLIENT_OBJECT(module, TYPES(CUmodule), STRUCT(gpc_module), KIND(module), HEADER("client/module/module.h"))
/* The token shows if it is a kernel or a function. */
GP_CLIENT_OBJECT(function, TYPES(CUfunction), STRUCT(gpc_function), ENTER(gpc_function_enter), HEADER("client/module/image.h"))
GP_CLIENT_OBJECT(kernel, TYPES(CUkernel), STRUCT(gpc_function), KIND(kernel), HEADER("client/module/image.h"))
GP_CLIENT_OBJECT(library, TYPES(CUlibrary), STRUCT(gpc_image), ENTER(gpc_library_enter_image), HEADER("client/module/module.h"))
GP_CLIENT_OBJECT(array, TYPES(CUarray), STRUCT(gpc_array), ENTER(gpc_array_enter), HEADER("client/array/array.h"))
GP_CLIENT_OBJECT(mipmapped, TYPES(CUmipmappedArray), STRUCT(gpc_array), ENTER(gpc_array_enter_mipmapped),
        HEADER("client/array/array.h"))
GP_CLIENT_OBJECT(texture, TYPES(CUtexObject), STRUCT(gpc_texture), ENTER(gpc_texture_lock), LEAVE(gpc_texture_unlock),
        HEADER("client/array/texture.h"))
GP_CLIENT_OBJECT(surface, TYPES(CUsurfObject), STRUCT(gpc_texture), ENTER(gpc_surface_lock), LEAVE(gpc_texture_unlock),
        HEADER("client/array/texture.h"))
GP_CLIENT_OBJECT(graph_node, TYPES(CUgraphNode), STRUCT(gpc_node), ENTER(gpc_graphs_begin_node), LEAVE(gpc_graphs_end),
        HEADER("client/graph/graph.h", "client/graph/graph_memory.h", "client/stream_ops/mem_op.h"))
GP_CLIENT_OBJECT(graph_exec, TYPES(CUgraphExec), STRUCT(gpc_exec), ENTER(gpc_exec_begin), LEAVE(gpc_graphs_end),
        HEADER("client/graph/graph_exec.h"))
