GP_MESSAGE(0x1, WAIT)
void gpFoo(int value);
