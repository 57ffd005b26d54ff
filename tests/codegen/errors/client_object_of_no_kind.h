GP_CLIENT_OBJECT(thing, TYPES(CUevent), STRUCT(gpc_event), KIND(thing), HEADER("client/thing.h"))
