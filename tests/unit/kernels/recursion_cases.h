/* SPDX-License-Identifier: MIT */
/* A recursion through a switch of seventeen cases, for the host and for kernels: FUNCTION is what stands before. */
FUNCTION unsigned int evaluate(unsigned int state, int depth);

FUNCTION unsigned int twice(unsigned int state, int depth)
{
    return evaluate(state + 11, depth) + evaluate(state ^ 13, depth - 1);
}

FUNCTION unsigned int evaluate(unsigned int state, int depth)
{
    unsigned int sum = 0;
    if (depth <= 0)
        return state ^ 0x9e3779b9u;
    switch (state % 17) {
    case 0: return evaluate(state + 1, depth - 1) + 1;
    case 1: return evaluate(state * 3, depth - 1) * 3;
    case 2: return evaluate(state ^ 5, depth - 2) - state;
    case 3:
        for (unsigned int i = 0; i < state % 3; i++)
            sum += evaluate(state + i, depth - 2);
        return sum;
    case 4: return evaluate(state / 3, depth - 1) ^ state;
    case 5: sum = state * 7; /* falls through */
    case 6: return sum + evaluate(state + 40503, depth - 1);
    case 7: return state + 77;
    case 8: return twice(state, depth - 2);
    case 9: return evaluate(state >> 1, depth - 1) + evaluate(state << 1, depth - 3);
    case 10: return evaluate(~state, depth - 1) / 5;
    case 11:
        while (state % 17 != 3)
            state += 5;
        return evaluate(state, depth - 1) + 2;
    case 12: return evaluate(state * state, depth - 1) | 1;
    case 13: return depth & 1 ? evaluate(state + 3, depth - 1) : twice(state, depth - 3);
    case 14: return evaluate(state - 9, depth - 1) % 1000;
    case 15: return evaluate(state * 5 + 1, depth - 1) + evaluate(state, depth - 4) * 9;
    default: return evaluate(state ^ (unsigned int)depth, depth - 1) + (unsigned int)depth;
    }
}
