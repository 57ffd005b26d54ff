GP_MESSAGE(0x1, POST, COPIES(BY_HOOK))
void gpFoo(int value);
