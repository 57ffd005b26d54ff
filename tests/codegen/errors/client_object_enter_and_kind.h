GP_CLIENT_OBJECT(thing, TYPES(CUevent), STRUCT(gpc_event), ENTER(gpc_event_enter), KIND(event), HEADER("client/thing.h"))
