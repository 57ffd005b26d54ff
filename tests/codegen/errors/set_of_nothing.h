GP_SET(odd)
