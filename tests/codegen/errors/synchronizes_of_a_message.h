GP_MESSAGE(0x0001, POST, SERVER_HOOK, SYNCHRONIZES(CURRENT))
void gpSample(
        int number);
