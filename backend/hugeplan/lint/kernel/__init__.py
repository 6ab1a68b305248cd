"""The kernel's command line as mm/hugetlb.c reads it, by kernel version."""
