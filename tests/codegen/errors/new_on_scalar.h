GP_MESSAGE(0x1, POST, SERVER_HOOK)
void gpFoo(NEW int value);
