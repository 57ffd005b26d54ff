GP_SET(odd, 1, 3, 1)
