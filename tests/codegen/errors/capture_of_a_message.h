GP_MESSAGE(0x7001, POST, SERVER_HOOK, CHARGES_NOTHING, CAPTURE(unsafe))
void gpSample(
        CUstream stream);
