GP_CALL(0x1, POST, SERVER_HOOK, BULK_IN)
CUresult cuFoo(
        int value);
