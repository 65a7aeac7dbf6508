// OpenVSL: the types of the NVM primitives, which stand in nvm_primitives.h.
#include "nvm_primitives.h"
