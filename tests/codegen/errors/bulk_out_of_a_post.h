GP_MESSAGE(0x1, POST, SERVER_HOOK, BULK_OUT)
void gpFoo(int value);
