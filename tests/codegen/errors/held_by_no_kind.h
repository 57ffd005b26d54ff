GP_HELD(thing, TYPES(CUevent), STRUCT(gpc_event), KIND(thing), HEADER("client/thing.h"))
