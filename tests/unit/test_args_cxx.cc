/* SPDX-License-Identifier: MIT */
#include "args_cases.h"

int main()
{
    return run_cases();
}
