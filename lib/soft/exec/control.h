/* SPDX-License-Identifier: MIT */
/* The tables of forms that exist once, for any processor; put together in forms.c. */
#ifndef HDSOFT_CONTROL_H
#define HDSOFT_CONTROL_H

#include "soft/exec/forms.h"

extern const hdsoft_form hdsoft_forms_control[];    /* control.c */
extern const hdsoft_form hdsoft_forms_call[];       /* call.c */
extern const hdsoft_form hdsoft_forms_collective[]; /* collective.c */
extern const hdsoft_form hdsoft_forms_barrier[];    /* barrier.c */
extern const hdsoft_form hdsoft_forms_atomic[];     /* handlers_atomic.c */
extern const hdsoft_form hdsoft_forms_half[];       /* handlers_half.c */
extern const hdsoft_form hdsoft_forms_copy[];       /* handlers_copy.c */
extern const hdsoft_form hdsoft_forms_video[];      /* handlers_video.c */

#endif
