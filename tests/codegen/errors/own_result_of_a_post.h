GP_MESSAGE(0x7001, POST, SERVER_HOOK, OWN_RESULT)
void gpSample(
        size_t size);
