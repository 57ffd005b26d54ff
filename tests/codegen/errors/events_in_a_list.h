GP_CALL(0x1, WAIT, CLIENT_HOOK, SERVER_HOOK)
CUresult cuFoo(
        IN_N(n) CUevent *events,
        unsigned int n);
