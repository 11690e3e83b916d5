/* What the bindings are made from. */
#include "lvm2cmd.h"
#include "libdevmapper.h"
