/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure/result.h"

#include <stdlib.h>

void pressure_result_free(struct pressure_result *result)
{
    free(result->points);
    *result = (struct pressure_result){0};
}
