/* one line */
/* ÿ */
