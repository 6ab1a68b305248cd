/* SPDX-License-Identifier: Apache-2.0 */
/* The C library that most modules use. What few use, they include themselves. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
