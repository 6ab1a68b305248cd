/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

bool options_want_page_size(const struct options *options, uint64_t page_bytes)
{
    if (options->page_size_count == 0)
        return !options->thp;
    for (size_t i = 0; i < options->page_size_count; i++)
        if (options->page_sizes[i] == page_bytes)
            return true;
    return false;
}

bool options_want_thp(const struct options *options)
{
    return options->thp || options->page_size_count == 0;
}
