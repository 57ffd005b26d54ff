GP_CALL(0x1, POST, CLIENT_HOOK, BULK_IN)
CUresult cuFoo(
        int value);
