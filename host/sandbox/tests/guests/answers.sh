#!/bin/sh
# A compiling child that answers with as many bytes as its limit on memory: --child SIZE MEMORY CPU.
exec head -c "$3" /dev/zero
