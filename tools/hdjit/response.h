/* SPDX-License-Identifier: MIT */
/*
 * Response files: a word @FILE of the command line stands for the words in FILE, as other compilers have it.
 */
#ifndef HDJIT_RESPONSE_H
#define HDJIT_RESPONSE_H

typedef struct response {
    char **list; /* ends in NULL */
    int count;
    char **texts; /* what the words are in; owned */
    int text_count;
} response;

/*
 * Words in a file are separated by white space; quotes keep it together, and a backslash takes the next character as it
 * is. A file may name another. Words behind -- are taken as they are. Returns 0, or an exit code after a message.
 */
int response_expand(int argc, char **argv, response *out);
void response_free(response *words);

#endif
