GP_MESSAGE(0x1, POST, SERVER_HOOK)
void gpFoo(int result);
