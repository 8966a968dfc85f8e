/* SPDX-License-Identifier: MIT */
#include "args_cases.h"

int main(void)
{
    return run_cases();
}
